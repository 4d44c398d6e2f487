"""The one table of Xid codes."""

import pytest

from store.xids import XIDS, describe, sxid_severity, xid_severity


def test_every_code_says_what_it_is_what_to_do_and_who_says_so() -> None:
    assert all(xid.text and xid.action and xid.source for xid in XIDS.values())
    assert describe(9999).severity == "warning"
    assert not describe(9999).text


@pytest.mark.parametrize(
    ("source", "severity"),
    [("IGNORE", "info"), ("RESTART_APP", "warning"), ("RESET_GPU", "critical"), ("RESTART_BM", "critical")],
)
def test_what_the_catalog_says_to_do_is_how_grave_it_is(source: str, severity: str) -> None:
    assert {xid.severity for xid in XIDS.values() if xid.source == source} == {severity}


def test_the_usual_codes_are_as_grave_as_they_are() -> None:
    assert {code: xid_severity(code) for code in (13, 31, 43, 45, 63, 94)} == {
        13: "warning", 31: "warning", 43: "info", 45: "info", 63: "info", 94: "warning",
    }  # fmt: skip
    assert {xid_severity(code) for code in (48, 64, 74, 79, 95, 119, 120)} == {"critical"}
    assert {xid_severity(code) for code in (109, 159, 142)} == {"critical"}


def test_xid_154_is_as_grave_as_the_action_it_names() -> None:
    said = "GPU recovery action changed from 0x0 (None) to "
    assert xid_severity(154, said + "0x1 (GPU Reset Required)") == "critical"
    assert xid_severity(154, said + "0x2 (Node Reboot Required)") == "critical"
    assert xid_severity(154, said + "0x3 (Drain P2P)") == "warning"
    assert xid_severity(154, "GPU recovery action changed from 0x1 (GPU Reset Required) to 0x0 (None)") == "info"


def test_a_switch_error_is_as_fatal_as_its_line_says() -> None:
    assert sxid_severity(12028, "SXid: 12028, Non-fatal, Link 32") == "warning"
    assert sxid_severity(12028, "SXid: 12028, Fatal, Link 32") == "critical"
    assert sxid_severity(23001, "SXid: 23001") == "critical"
