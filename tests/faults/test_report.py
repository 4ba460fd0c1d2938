from tests.faults.report import PAGE, faults, page, tagged_tests


def test_the_page_about_reliability_is_current() -> None:
    """`python -m tests.faults.report` writes it."""
    assert PAGE.read_text(encoding="utf-8") == page()


def test_every_fault_has_a_test_or_says_why_not() -> None:
    """And no test names a fault that is not in the catalogue."""
    _, catalogue = faults()
    tested = {number for test in tagged_tests() for number in test.numbers}
    assert {fault.number for fault in catalogue if not fault.instead} <= tested
    assert tested <= {fault.number for fault in catalogue}
    assert not tested & {fault.number for fault in catalogue if fault.instead}
