"""What may be shown of addresses, labels and configuration: a secret in them reads `<secret>`."""

import re
from collections.abc import Mapping
from typing import Any

MASK = "<secret>"
_VALUE = re.compile(r"(.*_)?(pass(word|wd|phrase)?|secret|token|credentials?|(api|access|private)_?key)", re.IGNORECASE)
_PARAM = re.compile(r"pass|pwd|secret|token|key|auth|credential|\bsig(nature)?\b", re.IGNORECASE)
_PARAM_LABEL = "__param_"
_USER = re.compile(
    r"//[^/?#\s]*@"  # as a URL is read
    r"|//[^/?#\s:@\[]+:(?!\d*(?:[/?#]|$))\S*@"  # a password that is not encoded as it should be and holds / ? #
)
_BARE_USER = re.compile(r"^\S*@")
_QUERY = re.compile(r"([?&;])([^=&;#\s]+)=([^&;#\s]*)")


def is_param_secret(name: str) -> bool:
    """Whether a URL parameter of this name holds a secret: token, key, signature and the like."""
    return _PARAM.search(name) is not None


def shown(text: str) -> str:
    """Return a text without user, password and secret parameters of the URLs in it."""
    return _QUERY.sub(_shown_param, _USER.sub(f"//{MASK}@", text))


def shown_address(address: str) -> str:
    """Return host:port, or a URL, without user and password."""
    return shown(address) if "//" in address else _BARE_USER.sub(f"{MASK}@", shown(address))


def shown_labels(labels: Mapping[str, str]) -> dict[str, str]:
    """Return the labels of a target before relabelling: secret parameters and what comes before @ are masked."""
    return {name: _shown_label(name, value) for name, value in labels.items()}


def shown_config(value: Any, name: str = "") -> Any:
    """Return a piece of configuration (`name` is its key) with every secret in it masked; names of files stay."""
    if isinstance(value, Mapping):
        inner = {key: _shown_config(name, str(key), one) for key, one in value.items()}
        if "replacement" in inner and _is_secret_label(str(value.get("target_label", ""))):
            inner["replacement"] = MASK
        return inner
    if isinstance(value, list):
        return [shown_config(one, name) for one in value]
    if not isinstance(value, str):
        return value
    if name in ("targets", "__address__"):
        return shown_address(value)
    return MASK if value and _VALUE.fullmatch(name) else shown(value)


def _shown_config(above: str, name: str, value: Any) -> Any:
    given = (above == "headers" or (above == "params" and isinstance(value, list))) and is_param_secret(name)
    if given or _is_secret_label(name):
        return [MASK] * len(value) if isinstance(value, list) else MASK
    return shown_config(value, name)


def _shown_label(name: str, value: str) -> str:
    if _is_secret_label(name):
        return MASK
    return shown_address(value) if name in ("__address__", "instance") else shown(value)


def _is_secret_label(name: str) -> bool:
    return name.startswith(_PARAM_LABEL) and is_param_secret(name.removeprefix(_PARAM_LABEL))


def _shown_param(match: re.Match[str]) -> str:
    lead, name, value = match.groups()
    return f"{lead}{name}={MASK if value and is_param_secret(name) else value}"
