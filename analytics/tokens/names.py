"""Names of models: which are one model under a longer name, and which are another model."""

import re

_PREFIX = re.compile(r"^.*/|^(us|eu|apac|global)\.|^(openai|anthropic|meta|mistral|amazon|cohere|ai21|deepseek)\.")
_SUFFIX = re.compile(
    r"([-@:_.](\d{4}-\d{2}-\d{2}|\d{2}-\d{2}|\d{2}-\d{4}|\d{8}|\d{6}|\d{3,4}|latest|preview|exp|v\d+([:.]\d+)?))+$"
)


def family(name: str) -> str:
    """Return the name without vendor, region, path, date, version and 'latest'.

    'm-large' of 'openai/m-large-2026-01-01'. A suffix that names another size or kind ('-mini', '-vision') stays: that
    is another model.
    """
    text = name.strip().lower()
    while (found := _PREFIX.match(text)) and found.end() < len(text):
        text = text[found.end() :]
    return _SUFFIX.sub("", text) or text


def same_model(asked: str, answered: str) -> bool:
    """Tell whether both names are of one model, apart from dates and versions."""
    one, other = (family(name).replace(".", "-").replace("_", "-").replace(":", "-") for name in (asked, answered))
    return one == other
