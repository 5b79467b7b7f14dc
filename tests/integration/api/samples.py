"""What the test sites hold, and an answer about it."""

from core.records import Answer, Citation, Document, Outcome

POLICY = """# Travel Policy ({name})

## 1. Scope

This policy is for everyone who travels for Alderway Instruments, in every office, on every business trip of any length.
It is for contractors too, where their contract says so. It is not for the daily way to work, nor for moving house, nor
for trips that a customer pays for and books, which the customer's own rules cover from the first day to the last one.

## 2. Hotel caps

A hotel room costs at most 180 euros a night in Munich and at most 240 pounds a night in London, breakfast included.
Above these amounts the head of department must agree in writing before the trip is booked in the portal.
During trade fairs the cap is raised by half, and the portal shows the dates of every fair for the next twelve months.
Rooms are booked through the portal only; a private booking is paid back up to what the portal would have asked.

## 3. Meals

The daily allowance for meals is 28 euros on a full day of travel and 14 euros on the day of arrival and of departure.
Nothing is paid for meals that the host provides, and receipts are not needed for the allowance itself.
Who invites a guest hands in the receipt with the guest's name and company, and is paid back up to 60 euros a person.
The allowance is paid with the next salary when the trip is closed in the portal by the fifteenth day of the month.
"""


def answer_about(document: Document, chunk_id: int) -> Answer:
    """A finished answer that cites one passage."""
    citation = Citation(
        n=1,
        chunk_id=chunk_id,
        document_id=document.id,
        document=document.path,
        title=document.title,
        heading_path=("2. Hotel caps",),
        page=None,
        quote="A hotel room costs at most 180 euros a night in Munich",
        revision=1,
        start=360,
        end=414,
        collection=document.collection,
    )
    return Answer(
        outcome=Outcome.ANSWERED,
        question="What may a hotel in Munich cost?",
        standalone_question="What may a hotel in Munich cost?",
        answer="A hotel room in Munich costs at most 180 euros a night [1].",
        language="en",
        citations=(citation,),
        timings={"search": 0.01, "total": 0.5},
        model_calls=2,
    )
