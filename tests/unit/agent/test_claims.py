import pytest

from agent.grounding.checking import check
from agent.language.amounts import Date, Quantity, dates, facts, located, quantities
from agent.language.binding import row_differs, subject_differs
from agent.language.claims import bound_differs, bounds, denies, drops_condition, negation_differs, periods
from agent.language.names import names


@pytest.mark.parametrize(
    "text", ["1,000 元", "１０００元", "一千元", "1k 元", "RMB 1000", "¥1,000", "1 千元", "1k yuan"]
)
def test_a_thousand_yuan_is_one_amount_however_it_is_written(text: str) -> None:
    assert quantities(text) == {Quantity("1000", "cny")}


@pytest.mark.parametrize(
    "text", ["1 March 2026", "March 1st, 2026", "2026-03-01", "2026/3/1", "2026年3月1日", "二〇二六年三月一日"]
)
def test_a_date_is_one_date_however_it_is_written(text: str) -> None:
    assert facts(text) == {Date(2026, 3, 1)}


@pytest.mark.parametrize("text", ["5%", "5 percent", "百分之五", "５％", "five per cent"])
def test_five_percent(text: str) -> None:
    assert quantities(text) == {Quantity("5", "percent")}


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("8 to 16 weeks", {("8", "week"), ("16", "week")}),
        ("八至十六周", {("8", "week"), ("16", "week")}),
        ("two thirds", {("2/3", "part")}),
        ("三分之二", {("2/3", "part")}),
        ("renewed twice", {("2", "time")}),
        ("at 03:30", {("3:30", "clock")}),
        ("EUR 2.5 million", {("2500000", "eur")}),
        ("250 万元", {("2500000", "cny")}),
        ("twenty-five days", {("25", "day")}),
        ("level P2", set()),
        ("one of them", set()),
        ("第三章", set()),
    ],
)
def test_amounts(text: str, expected: set[tuple[str, str]]) -> None:
    assert {(found.value, found.unit) for found in quantities(text)} == expected


def test_weeks_are_not_days() -> None:
    assert quantities("two weeks") != quantities("14 days")


def test_parts_of_dates() -> None:
    assert dates("the 27th of each month") == dates("每月 27 日") == {Date(day=27)}
    assert dates("in 2027") == {Date(2027)}
    assert dates("EUR 2000") == set()
    assert Date(month=3).within(Date(2026, 3, 1))
    assert not Date(2026, 3, 2).within(Date(2026, 3, 1))


def test_where_amounts_stand() -> None:
    text = "from 3 to five days"
    assert [text[start:end] for _, start, end in located(text)] == ["3", "five days"]


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("at least 3 weeks", {"3": {"least"}}),
        ("no more than 3 weeks", {"3": {"most"}}),
        ("not less than 3 weeks", {"3": {"least"}}),
        ("3 weeks or more", {"3": {"least"}}),
        ("不少于 15 位", {"15": {"least"}}),
        ("不得超过 3 天", {"3": {"most"}}),
        ("3 天以内", {"3": {"most"}}),
        ("未满 14 周岁", {"14": {"most"}}),
        ("3 weeks", {}),
    ],
)
def test_bounds(text: str, expected: dict[str, set[str]]) -> None:
    assert bounds(text) == expected


def test_at_least_is_not_at_most() -> None:
    assert bound_differs("At most 12 books.", "Readers borrow at least 12 books.")
    assert bound_differs("最多 12 册", "至少 12 册")
    assert not bound_differs("Up to 12 books.", "At most 12 books.")
    assert not bound_differs("12 books.", "At most 12 books.")


@pytest.mark.parametrize(
    ("sentence", "piece", "differs"),
    [
        ("Dogs may enter.", "Dogs may not enter.", True),
        ("Dogs must not enter.", "Dogs may not enter.", False),
        ("Nobody works alone.", "You must not work alone.", False),
        ("Cash is accepted.", "Cash is never accepted.", True),
        ("Smoking is allowed.", "Smoking is forbidden.", True),
        ("You must not split an order.", "Splitting an order is prohibited.", False),
        ("Answers need no approval.", "Answers need the approval of the head.", True),
        ("No more than 5 dogs may enter.", "At most 5 dogs may enter.", False),
        ("携带宠物可以进入。", "携带宠物不得进入。", True),
        ("不得携带宠物。", "禁止携带宠物。", False),
        ("不超过 5 人可以进入。", "最多 5 人可以进入。", False),
        ("未缴费的会员有表决权。", "未缴费的会员没有表决权。", True),
    ],
)
def test_yes_and_no(sentence: str, piece: str, differs: bool) -> None:
    assert negation_differs(sentence, piece) is differs


def test_two_turns_make_one_that_agrees() -> None:
    passage = "Gifts worth more than EUR 25 are not accepted."
    assert check("Gifts worth less than EUR 25 are accepted.", passage, "").ok
    assert check("Gifts worth more than EUR 25 are accepted.", passage, "").fault == "negation"
    assert check("Gifts worth less than EUR 25 are not accepted.", passage, "").fault == "bound"


@pytest.mark.parametrize(("text", "expected"), [("Not more than 5.", False), ("不超过 5 人", False), ("不得", True)])
def test_denying(text: str, expected: bool) -> None:
    assert denies(text) is expected


def test_periods() -> None:
    assert periods("EUR 22 a month") == periods("每月 22 欧元") == {"month"}
    assert check("A permit costs EUR 22 a week.", "A permit costs EUR 22 a month.", "").fault == "unit"


def test_a_dropped_condition_is_noticed() -> None:
    piece = "Students may use the furnace only after a briefing."
    assert drops_condition("Students may use the furnace.", piece)
    assert not drops_condition("After a briefing students may use the furnace.", piece)
    assert drops_condition("学生可以使用马弗炉。", "学生经培训后方可使用马弗炉。") is False  # the words are there
    assert drops_condition("可以免于接种。", "志愿者不接触动物的，可以免于接种。")


def test_chinese_names_before_titles_and_offices() -> None:
    assert names("由田村先生和后勤科负责") == {"村", "后勤"}


ROWS = ["City: Oslo | Hotel: EUR 185 | Meals: EUR 62", "City: Lima | Hotel: EUR 95 | Meals: EUR 38"]


@pytest.mark.parametrize(
    ("sentence", "differs"),
    [
        ("The hotel in Oslo is EUR 185.", False),
        ("The hotel in Oslo is EUR 95.", True),
        ("Meals in Oslo are EUR 185.", True),
        ("The hotel is EUR 185 in Oslo and EUR 95 in Lima.", False),
    ],
)
def test_rows_and_columns_are_not_mixed(sentence: str, differs: bool) -> None:
    assert row_differs(sentence, ROWS) is differs


def test_a_number_belongs_to_its_subject() -> None:
    passage = "Claims are filed within 90 days after the loss. Fraud is reported to Legal on the same day."
    assert subject_differs("Fraud is reported to Legal within 90 days.", passage, "")
    assert not subject_differs("Claims are filed within 90 days.", passage, "")


def test_dates_are_checked_in_both_languages() -> None:
    passage = "Since 1 March 2026 the bonus has been 18 percent."
    assert check("The bonus has been 18% since 2026-03-01.", passage, "").ok
    assert check("自 2026年3月1日 起，补贴为百分之十八。", passage, "").ok
    assert check("自 2026年5月1日 起，补贴为百分之十八。", passage, "").fault == "date"
