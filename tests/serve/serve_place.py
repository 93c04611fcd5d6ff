"""A server in this process, whose runs are answered at once: `seconds` of them are a thousandth."""

from __future__ import annotations

import warnings
from pathlib import Path
from typing import Any

with warnings.catch_warnings():
    warnings.simplefilter("ignore")
    from argon2 import PasswordHasher
    from starlette.testclient import TestClient

from jostle.accounting.amounts import QUANTA, Amount
from jostle.privacy.ledger.ledger import Ledger
from jostle.serve import worker
from jostle.serve.routing import Server
from jostle.serve.runs import Runs
from jostle.serve.store import Home
from jostle.serve.workbench import application

PASSWORD = "a long password"
ROWS = ["age,sex", *(f"{17 + k % 70},{'F' if k % 2 else 'M'}" for k in range(400))]
NAMES = {"olga": "owner", "ana": "analyst", "ben": "analyst", "rita": "reviewer", "aldo": "auditor"}


def count(epsilon: float, name: str = "people") -> str:
    return f'private t = dataset("{name}")\nn = {{{{ select count(*) from t with epsilon {epsilon} }}}}\nrelease n\n'


def shares(home: Home) -> dict[str, int]:
    """What each row of the ledger has spent, in quanta."""
    return {dataset.terms.name: dataset.state.spent[0] for dataset in Ledger(home.ledger).datasets()}


def change(home: Home, *statements: str, values: tuple[object, ...] = ()) -> None:
    """Changes what the store of a home holds, beside its functions."""
    with home.alone():
        for statement in statements:
            home._do(statement, *values)


class Place:
    """A server with `people` under epsilon 3, of which `ana` has 1 and `ben`, whose programs are reviewed, 1."""

    def __init__(self, folder: Path, ledger: str = "") -> None:
        self.home = Home(folder, ledger)
        vars(self.home)["_hasher"] = PasswordHasher(1, 8, 1)  # as quick as it can be
        self.jobs: list[worker.Job] = []
        self.server = Server(self.home, Runs(self.home, self.check, self.start, worker.draw, (0.001, 600.0), 4))
        self.app = application(self.server, ["testserver"])
        self.tokens = {}
        for name, role in NAMES.items():
            self.home.set_password(self.home.add_account(name, role, "system"), PASSWORD)
            self.tokens[name] = self.home.add_token(name, "", "all", 1.0)[1]
        (folder / "data" / "people.csv").write_text("\n".join(ROWS) + "\n")
        done = self.post("olga", "/api/datasets", name="people", file="people.csv", protecting="rows",
                         schema='{age: 17..90, sex: {"F", "M"}}', budget="epsilon 3")  # fmt: skip
        assert done.status_code == 200, done.text
        Ledger(self.home.ledger).grant("people", "ana", Amount("epsilon", QUANTA))
        assert self.post("olga", "/api/grants", dataset="people", analyst="ben", amount="epsilon 1",
                         review=True).status_code == 200  # fmt: skip

    def check(self, program: str, settings: Any, **more: Any) -> dict[str, Any]:
        return worker.check({"program": program, "settings": settings, **more}, self.home.folder / "cache")

    def start(self, job: worker.Job) -> None:
        if job.facts is None:  # no simulation
            self.jobs.append(job)
        worker.leave(Path(job.folder), worker.answer(job))

    def client(self) -> TestClient:
        """A browser without cookies."""
        return TestClient(self.app, base_url="http://testserver", follow_redirects=False, raise_server_exceptions=False)

    def browser(self, name: str) -> tuple[TestClient, dict[str, str]]:
        """A browser that has logged in, and the header of its pages."""
        client = self.client()
        answer = client.post("/login", data={"name": name, "password": PASSWORD})
        assert answer.status_code == 303, answer.text
        page = client.get("/").text
        return client, {"X-CSRF": page.partition('name="csrf" content="')[2].partition('"')[0]}

    def headers(self, name: str) -> dict[str, str]:
        return {"Authorization": f"Bearer {self.tokens[name]}"} if name else {}

    def get(self, name: str, path: str) -> Any:
        return self.client().get(path, headers=self.headers(name))

    def post(self, name: str, path: str, /, **body: object) -> Any:
        return self.client().post(path, json=body, headers=self.headers(name))

    def run(self, name: str, program: str, seconds: float = 0.001) -> dict[str, Any]:
        """Hands a program in; gives what its run is then."""
        handed = self.post(name, "/api/runs", program=program, seconds=seconds)
        assert handed.status_code == 200, handed.text
        return dict(self.get(name, f"/api/runs/{handed.json()['id']}?wait=1").json())
