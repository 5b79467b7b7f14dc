"""What others may see and decide of one's questions over HTTP: traces, approvals; and what the asker is told of it."""

import re
from typing import Any
from uuid import UUID

import pytest

from core.records import Principal, Role, RunState, Step
from storage import audit, collections, runs, sessions, traces, users
from tests.integration.api.conftest import Site
from tests.integration.api.samples import answer_about

STEPS = [
    Step("search", 3, {"query": "hotel", "hits": [{"chunk": 1, "score": 0.5}]}),
    Step("model", 9, {"prompt": "grade", "version": "ab12", "prompt_tokens": 30, "completion_tokens": 2, "ms": 5}),
]


async def a_run(
    site: Site, *, held: bool = False, user: str = "employee", session: UUID | None = None
) -> tuple[UUID, UUID, UUID]:
    """Ids of a session of that user's (a new one unless given), its turn and its run; `held`: it waits for approval."""
    db, principal = site.runtime.db, site.demo.principals[user]
    assert site.demo.open
    session = session or (await sessions.create(db, principal, "Hotels")).id
    answer = answer_about(site.demo.open, site.demo.chunk_id)
    run = await runs.begin(db, principal, session, answer.question, "auto", checkpointed=False)
    shown, pending = answer, None
    if held:
        from agent.workflow.approving import waiting

        shown, pending = waiting(answer, ["open"]), (answer, ["open"])
    turn = await runs.answered(db, principal, run, session, shown, STEPS, pending=pending)
    assert turn is not None
    return session, turn.id, run


# --- traces ---------------------------------------------------------------------------------------------------------


async def test_an_admin_replays_a_run_for_a_stated_reason(site: Site) -> None:
    session, turn, run = await a_run(site)
    async with site.client(site.demo.tokens["admin"]) as client:
        (listed,) = (await client.get("/v1/runs")).json()["runs"]
        assert (listed["id"], listed["user"], listed["session_id"]) == (str(run), "employee", str(session))
        assert (listed["state"], listed["outcome"], listed["prompt_tokens"]) == ("finished", "answered", 30)
        assert "Munich" not in str(listed)
        assert (await client.get("/v1/runs", params={"user": "admin"})).json()["runs"] == []
        for body in ({}, {"reason": ""}, {"reason": " \t"}):
            refused = await client.post(f"/v1/runs/{run}/trace", json=body)
            assert (refused.status_code, refused.json()["code"]) == (400, "reason_missing")
            assert "Munich" not in refused.text
        trace = (await client.post(f"/v1/runs/{run}/trace", json={"reason": "complaint 12"})).json()
    assert [step["kind"] for step in trace["steps"]] == ["search", "model"]
    assert trace["steps"][0]["data"]["hits"] == [{"chunk": 1, "score": 0.5}]
    assert (trace["question"], trace["turn"]["turn_id"]) == ("What may a hotel in Munich cost?", str(turn))
    entry = (await audit.listing(site.runtime.db, site.demo.tenant.id, 1))[0]
    assert (entry.action, entry.subject) == ("trace.read", str(run))
    async with site.client(site.demo.tokens["employee"]) as client:
        told = (await client.get(f"/v1/sessions/{session}")).json()["readings"]
        assert [(one["reader"], one["reason"]) for one in told] == [("admin", "complaint 12")]
        assert (await client.get("/v1/readings")).json()["readings"] == told


@pytest.mark.threat(51)
async def test_an_employee_replays_nothing_not_even_ones_own(site: Site) -> None:
    _, _, run = await a_run(site)
    async with site.client(site.demo.tokens["employee"]) as client:
        for body in ({"reason": "curious"}, {}):
            assert (await client.post(f"/v1/runs/{run}/trace", json=body)).status_code == 404
        assert (await client.get("/v1/runs")).status_code == 403
        assert (await client.get("/v1/readings")).json() == {"readings": []}


# --- the life of a session --------------------------------------------------------------------------------------------


async def test_cancelling_tells_whether_something_ran(site: Site) -> None:
    db, employee = site.runtime.db, site.demo.principals["employee"]
    session = await sessions.create(db, employee, "")
    address = f"/v1/sessions/{session.id}"
    async with site.client(site.demo.tokens["employee"]) as client:
        assert (await client.post(f"{address}/cancel")).json() == {"cancelled": False}
        run = await runs.begin(db, employee, session.id, "hotel?", "auto", checkpointed=False)
        async with sessions.running(db, employee, session.id):
            assert (await client.get(address)).json()["unanswered"] == {"state": "running", "question": "hotel?"}
            assert (await client.post(f"{address}/cancel")).json() == {"cancelled": True}
        assert await runs.cancelling(db, employee, run)
        # Nobody holds the session any more: the process that answered was killed.
        assert (await client.get(address)).json()["unanswered"]["state"] == "aborted"
        assert (await client.get(address)).json()["session"]["title"] == "hotel?"


async def test_a_conversation_begins_with_a_title_from_its_question(site: Site) -> None:
    long = "How many days of annual leave does somebody have who joined in the middle of the year?"
    async with site.client(site.demo.tokens["employee"]) as client:
        made = (await client.post("/v1/sessions", json={"question": long})).json()
        own = (await client.post("/v1/sessions", json={"question": long, "title": "Leave"})).json()
    assert made["title"] == "How many days of annual leave does somebody have who joined…"
    assert own["title"] == "Leave"


async def test_a_fork_begins_where_its_turn_ended(site: Site) -> None:
    session, turn, _ = await a_run(site)
    async with site.client(site.demo.tokens["employee"]) as client:
        reply = await client.post(f"/v1/turns/{turn}/fork")
        assert reply.status_code == 201
        forked = (await client.get(f"/v1/sessions/{reply.json()['id']}")).json()
        origin = (await client.get(f"/v1/sessions/{session}")).json()
    assert forked["session"]["id"] != str(session)
    (copied,), (first,) = forked["turns"], origin["turns"]
    assert {**copied, "turn_id": None} == {**first, "turn_id": None}


async def test_an_export_says_what_the_page_says(site: Site) -> None:
    assert site.demo.open
    session, _, _ = await a_run(site)
    async with site.client(site.demo.tokens["employee"]) as client:
        reply = await client.get(f"/v1/sessions/{session}/export")
        chinese = await client.get(f"/v1/sessions/{session}/export", headers={"accept-language": "zh"})
        async with site.client(site.demo.tokens["admin"]) as admin:
            await admin.delete(f"/v1/documents/{site.demo.open.id}")
        later = await client.get(f"/v1/sessions/{session}/export")
    assert reply.headers["content-type"] == "text/markdown; charset=utf-8"
    assert "attachment" in reply.headers["content-disposition"]
    assert reply.text.startswith("# Hotels\n\n## What may a hotel in Munich cost?\n\nA hotel room in Munich costs")
    assert "- [1] Travel Policy (travel.md) > 2. Hotel caps, travel.md, revision 1, characters " in reply.text
    assert "\n  > A hotel room costs at most 180 euros a night in Munich\n" in reply.text
    assert "来源" in chinese.text
    assert "the document was deleted since" in later.text
    assert "180 euros a night in Munich" in later.text


# --- approvals ------------------------------------------------------------------------------------------------------


@pytest.fixture
async def lena(site: Site) -> tuple[Principal, str]:
    """Somebody in `legal`, and her token."""
    from api import auth

    made = await users.create(site.runtime.db, site.demo.tenant.id, "lena", "$hash", Role.EMPLOYEE, ["legal"])
    return made, await auth.issue(site.runtime.db, made, "test", "api", None)


async def test_an_answer_is_approved_over_http(site: Site, lena: tuple[Principal, str]) -> None:
    assert site.demo.open
    await collections.set_approvers(site.runtime.db, site.demo.tenant.id, site.demo.open.collection_id, ["group:legal"])
    session, turn, _ = await a_run(site, held=True)
    async with site.client(site.demo.tokens["employee"]) as asker, site.client(lena[1]) as approver:
        waiting = (await asker.get(f"/v1/sessions/{session}")).json()["turns"][0]
        assert (waiting["outcome"], waiting["citations"]) == ("waiting", [])
        assert "180 euros" not in (await asker.get(f"/v1/sessions/{session}/export")).text
        assert (await asker.get("/v1/approvals")).json() == {"approvals": [], "waiting": 0}
        assert (await asker.post(f"/v1/approvals/{turn}", json={"approved": True})).status_code == 404
        listed = (await approver.get("/v1/approvals")).json()
        (held,) = listed["approvals"]
        assert listed["waiting"] == 1
        assert (held["turn_id"], held["user"], held["collections"]) == (str(turn), "employee", ["open"])
        assert held["citations"][0]["quote"].startswith("A hotel room costs")
        unreasoned = await approver.post(f"/v1/approvals/{turn}", json={"approved": False})
        assert unreasoned.status_code == 422
        decided = await approver.post(f"/v1/approvals/{turn}", json={"approved": True, "reason": "until June"})
        assert decided.status_code == 200
        assert (await approver.post(f"/v1/approvals/{turn}", json={"approved": True})).status_code == 409
        shown = (await asker.get(f"/v1/sessions/{session}")).json()["turns"][0]
    assert (shown["turn_id"], shown["outcome"]) == (str(turn), "answered")
    assert (shown["answer"], shown["notice"]) == (held["answer"], "Approved with this note: until June")
    assert shown["citations"] == held["citations"]


@pytest.mark.threat(51)
async def test_what_waits_elsewhere_is_not_there(site: Site) -> None:
    _, turn, _ = await a_run(site, held=True)
    async with site.client(site.other.tokens["admin"]) as stranger:
        assert (await stranger.get("/v1/approvals")).json() == {"approvals": [], "waiting": 0}
        for approved in (True, False):
            body = {"approved": approved, "reason": "old"}
            assert (await stranger.post(f"/v1/approvals/{turn}", json=body)).status_code == 404
    async with site.client(site.demo.tokens["admin"]) as admin:
        assert (await admin.get("/v1/approvals")).json()["waiting"] == 1


async def test_approvers_are_led_to_what_waits_and_nobody_else(site: Site, lena: tuple[Principal, str]) -> None:
    assert site.demo.open

    async def link(token: str) -> str | None:
        async with site.client(token) as client:
            found = re.search(r'href="/approvals"[^>]*>(.+?)</a>', (await client.get("/")).text)
        return found and re.sub(r"<.*?>", "", found[1]).strip()

    tokens = (site.demo.tokens["admin"], lena[1], site.demo.tokens["employee"], site.other.tokens["admin"])
    assert [await link(token) for token in tokens] == [None] * 4
    await collections.set_approvers(site.runtime.db, site.demo.tenant.id, site.demo.open.collection_id, ["group:legal"])
    assert [await link(token) for token in tokens] == ["Approvals", "Approvals", None, None]
    await a_run(site, held=True)
    assert [await link(token) for token in tokens] == ["Approvals 1", "Approvals 1", None, None]


async def test_a_collection_says_whether_its_answers_wait(site: Site) -> None:
    assert site.demo.open
    address = f"/v1/collections/{site.demo.open.collection_id}/approval"
    async with site.client(site.demo.tokens["admin"]) as client:
        assert (await client.put(address, json={"approvers": ["nobody"]})).status_code == 422
        assert (await client.put(address, json={"approvers": []})).json()["approval"] is True
        listed = (await client.get("/v1/collections")).json()["collections"]
        assert {one["name"]: one["approval"] for one in listed} == {"closed": False, "open": True}
        assert (await client.put(address, json={"approvers": None})).json()["approval"] is False


async def test_a_run_that_still_goes_on_is_not_called_dead(site: Site) -> None:
    db, employee = site.runtime.db, site.demo.principals["employee"]
    session = await sessions.create(db, employee, "Hotels")
    await runs.begin(db, employee, session.id, "hotel?", "auto", checkpointed=False)
    async with sessions.running(db, employee, session.id):
        await runs.repair(db, employee, session.id)
        assert await runs.unanswered(db, employee, session.id) == (RunState.RUNNING, "hotel?")


async def test_the_worker_removes_traces_that_are_past_their_days(site: Site) -> None:
    db, employee = site.runtime.db, site.demo.principals["employee"]
    session, turn, _ = await a_run(site)
    await a_run(site)
    async with db.transaction(employee.tenant_id) as tx:
        aged = "UPDATE runs SET finished_at = finished_at - interval '31 days' WHERE session_id = %s"
        await tx.connection.execute(aged, (session,))
    await site.context.worker.prune(employee.tenant_id)
    left = await traces.listing(db, site.demo.principals["admin"])
    assert [run.session_id for run in left] != [session]
    assert len(left) == 1
    assert [kept.id for kept in await sessions.turns(db, employee, session)] == [turn]


def test_nothing_is_lost_of_a_step() -> None:
    told: Any = runs.steps_json([Step("search", 1, {"query": "a\x00b", "day": UUID(int=1)})])
    assert "\\u0000" not in told
    assert str(UUID(int=1)) in told
