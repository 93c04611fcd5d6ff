"""Makes `survey.csv`: 4,000 synthetic answers to a survey, by place. Run it in this folder."""

import csv
import random

PLACES = {
    "IE-C-Galway": 3, "IE-C-Sligo": 1, "IE-L-Dublin": 9, "IE-L-Louth": 1, "IE-M-Cork": 4, "IE-M-Ennis": 1,
    "IE-M-Kerry": 2, "NL-H-Delft": 2, "NL-H-Leiden": 2, "NL-U-Utrecht": 5, "NL-U-Zeist": 1, "NO-V-Bergen": 5,
    "NO-V-Voss": 1, "NO-O-Oslo": 9,
}  # fmt: skip

draw = random.Random(4)
with open("survey.csv", "w", newline="") as file:
    writer = csv.writer(file, lineterminator="\n")
    writer.writerow(["place", "age", "sex", "hours", "answer"])
    for place in draw.choices(list(PLACES), list(PLACES.values()), k=4000):
        age = min(79, max(16, round(draw.gauss(44, 16))))
        answer = draw.choices(["yes", "no", "none"], [60 - age / 2, age / 2 + 15, 8])[0]
        writer.writerow([place, age, draw.choice("FM"), max(0, round(draw.gauss(35, 8))) if age < 67 else 0, answer])
