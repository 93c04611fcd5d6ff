"""The files of the neighbours harness: people, and rows that somebody wrote to break what reads them."""

from __future__ import annotations

from arena import table

COLUMNS = ("id", "age", "sex", "city", "hours", "income", "born", "note")
DESCRIBED = (
    '{id: integer, age: 0..99, sex: {"Female", "Male"}, city: {"Ames", "Cork", "Delft"}, hours: 0.0..80.0, '
    "income: real, born: text, note: text}"
)

PEOPLE = [
    f"{k % 20},{(7 * k) % 100},{'Female' if k % 3 else 'Male'},{('Ames', 'Cork', 'Delft')[k % 3]},{k % 50}.5,"
    f"{1000 * k},19{50 + k % 50}-0{1 + k % 9}-1{k % 10},note {k % 4}"
    for k in range(60)
]

LONG = b"9" * 200_000

ROWS: dict[str, bytes] = {
    "no numbers": b"nan,NaN,inf,-inf,1e400,Infinity,0000-00-00,-nan",
    "huge": b"99999999999999999999999999,1e308,Female,Ames,1e308,1e308,9999999-99-99,x",
    "huge and negative": b"-99999999999999999999999999,-1e308,Male,Cork,-1e308,-1e308,-1,x",
    "minus zero and subnormal": b"-0,-0.0,Female,Ames,-0.0,5e-324,-0,-0",
    "beyond exact doubles": b"9007199254740993,9007199254740993,Male,Delft,4503599627370496.5,9223372036854775808,,",
    "a zero to divide by": b"0,0,Female,Cork,0,0,0,0",
    "negative under a root": b"-7,-7,Female,Cork,-7,-7,-7,-7",
    "an open quote": b'"1,"2,"Female,"Ames,"3,"4,"5,"6',
    "a quote across lines": b'1,2,Female,Ames,3,4,"1970-01-01,over\nthe line",x',
    "doubled quotes": b'"""",""1"",""Female"",""""""Ames"""""",1,2,3,4',
    "extra cells": b"1,2,Male,Ames,3,4,5,6,7,8,9,10,11,12,13,14,15,16",
    "a thousand cells": b"," * 1000,
    "one cell": b"1",
    "nothing but commas": b",,,,,,,",
    "an empty line": b"",
    "blanks": b" , ,\t, , , , , ",
    "a carriage return": b"\r",
    "returns inside": b"1\r2,3\r,Female\r,Ames,1,2,3,4\r",
    "no UTF-8": b"\xff\xfe\xfd,\xc3\x28,\xed\xa0\x80,\xf0\x28\x8c\xbc,\x80,\xbf,\xc0\xaf,\xfe",
    "NUL": b"\x00,1\x00,Fem\x00ale,Ames\x00,\x001,2\x00,\x00,\x00",
    "a byte order mark": b"\xef\xbb\xbf1,\xef\xbb\xbf2,\xef\xbb\xbfFemale,Ames,3,4,5,6",
    "line separators of Unicode": "1\u2028,2\u2029,Female\u0085,Ames\u000b,3\u000c,4,5,6".encode(),
    "digits of other scripts": "１２,٣٤,Female,Ames,五,Ⅻ,½,²".encode(),
    "look-alikes": "1,2,Fеmale,Ames\u200b,3,4,\u202e5,e\u0301".encode(),
    "new categories": b"1,2,Other,Nowhere,3,4,5,a key nobody has",
    "almost categories": b"1,2,female,Ames ,3,4,5,6",
    "another way to write numbers": b"0x10,1_0,Female,Ames,1e,+.e5,1.5.2,--1",
    "blanks around numbers": b" 5 ,\t5\t,Female,Ames, +5. , .5e0 ,6,7",
    "words of SQL": b"'); DROP TABLE raw0; --,NULL,NULL,'Ames',SELECT 1,$1,?,{0}",
    "a formula": b"=1+1,=cmd|' /C calc'!A0,@SUM(1),Ames,+1,-1,%s%n,{{1}}",
    "the header again": ",".join(COLUMNS).encode(),
    "a long cell": LONG + b"," + LONG + b",Female,Ames," + LONG + b"," + LONG + b"," + LONG + b"," + LONG,
    "a new person": b"424242,33,Female,Ames,1,1,1,1",
    "a person again": b"3,21,Female,Ames,3.5,3000,1953-04-13,note 3",
}


def people(*more: bytes, rows: list[str] | None = None) -> bytes:
    """The file, with more lines at its start and at its end."""
    kept = [r.encode() for r in (PEOPLE if rows is None else rows)]
    half = len(more) // 2
    return table(*COLUMNS, rows=[*more[:half], *kept, *more[half:]])


def versions() -> dict[str, bytes]:
    """The file, without rows, with every hostile row, with each of them twice and nothing else."""
    every = list(ROWS.values())
    return {
        "as it is": people(),
        "no rows": people(rows=[]),
        "all hostile rows": people(*every),
        "hostile rows alone": people(*every, *reversed(every), rows=[]),
        "without an end of line": people(b"1,2,Male,Ames,3,4,5,6").rstrip(b"\n"),
    }
