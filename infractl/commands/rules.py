"""`infractl rules`: write alert rules and Alertmanager's configuration, check them, test them, push findings."""

from pathlib import Path
from tempfile import TemporaryDirectory
from typing import TYPE_CHECKING, Any

import click

from infractl.settings import config_option, current_config, store_options, zone_option
from store.errors import ConfigError, ExitCode, SourceError, UsageError
from store.window import format_duration, parse_duration

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    import httpx

    from rules.alert import RuleOptions
    from rules.push import AlertPost

TIMEOUT_S = 10.0


@click.group("rules")
@click.option("--runbook-url", metavar="URL", help="Where the runbooks are; {slug} stands for a page's name.")
@click.option(
    "--dashboard-url", metavar="URL", help="Where infractl's app is; alerts link there (http://127.0.0.1:8050)."
)
@click.option("--job", help="Prometheus' job name of the infractl scrape (infractl).")
@click.option("--label", metavar="K=V", multiple=True, help="Label to put on every alert; may be repeated.")
@click.option(
    "--hold", metavar="DURATION", help="How long a condition must hold before its alert fires (not of the pack)."
)
@click.option("--keep-firing", metavar="DURATION", help="How long an alert outlasts its condition (not of the pack).")
@click.option("--gap", metavar="DURATION", help="How long a sample counts when scrapes are missed (2m).")
@click.option("--stale-after", metavar="DURATION", help="Age at which an analysis counts as stale (15m).")
@config_option
@click.pass_context
def command(ctx: click.Context, /, config: Path | None, **site: Any) -> None:
    """Alert rules for Prometheus, made from the triggers of the analyses.

    The options below hold for every subcommand. Have Prometheus scrape infractl as job `infractl` with
    `honor_labels: true`, or its labels `job` and `instance` arrive under other names.
    """
    del config
    ctx.obj = site


@command.command()
@click.option("--output", type=click.Path(path_type=Path), metavar="FILE", help="Rule file to write; else stdout.")
@click.option(
    "--alertmanager", type=click.Path(path_type=Path), metavar="FILE", help="Write Alertmanager's config too."
)
@click.option("--webhook-url", metavar="URL", help="Where Alertmanager sends notifications.")
@click.option("--deadman-url", metavar="URL", help="Outside watcher of the dead man's switch.")
@click.option("--team", metavar="NAME=URL", multiple=True, help="Webhook for alerts with the label team=NAME.")
@click.option("--severity", metavar="NAME=URL", multiple=True, help="Webhook for alerts of a severity.")
@click.option("--grafana", type=click.Path(path_type=Path), metavar="FILE", help="Write a dashboard for Grafana too.")
@click.pass_obj
def build(
    site: dict[str, Any],
    /,
    output: Path | None,
    alertmanager: Path | None,
    webhook_url: str | None,
    deadman_url: str | None,
    grafana: Path | None,
    **told: tuple[str, ...],
) -> None:
    """Write the rule file, and with --alertmanager the configuration that routes its alerts.

    SLOs of the configuration file become rules under Sloth's names. --grafana writes a dashboard of the signals.
    """
    from analytics.catalog import load_all
    from rules.build import rule_file, to_yaml

    options = _read_options(**site)
    built = rule_file(load_all(), options)
    if output is None:
        click.echo(to_yaml(built), nl=False)
    else:
        _write(output, to_yaml(built))
        click.echo(f"{sum(len(g['rules']) for g in built['groups'])} rules in {output}", err=True)
    if alertmanager is not None:
        _write_alertmanager(alertmanager, webhook_url, deadman_url, told)
    if grafana is not None:
        from rules.grafana import to_json

        _write(grafana, to_json(load_all(), options))
        click.echo(f"a dashboard for Grafana in {grafana}", err=True)


@command.command()
@click.argument("file", type=click.Path(path_type=Path), required=False)
@click.option(
    "--metrics",
    metavar="FILE|URL",
    multiple=True,
    help="A /metrics page: report rules on metrics that it lacks. May be repeated: all that Prometheus scrapes.",
)
@click.option("--runbooks", type=click.Path(path_type=Path), metavar="DIR", help="Report alerts without a page there.")
@click.pass_obj
def check(site: dict[str, Any], file: Path | None, metrics: tuple[str, ...], runbooks: Path | None) -> None:
    """Check a rule file; without FILE, the one that `build` would write.

    Reports labels that a template uses and its expression drops, rules that can never fire, bounds that no bucket can
    tell, divisions by what may be 0, and what promtool finds.
    """
    from analytics.catalog import load_all
    from rules.build import read_rules, rule_file, to_yaml
    from rules.lint import known_metrics, lint, read_pages, silent

    analyses = load_all()
    text = to_yaml(rule_file(analyses, _read_options(**site))) if file is None else _read_file(file)
    name = "the generated rule file" if file is None else str(file)
    rules = read_rules(text, name)
    exposed = read_pages([_fetch(page) for page in metrics]) if metrics else None
    problems = lint(rules, known_metrics(analyses), exposed=exposed, runbooks=runbooks)
    if exposed is not None and (unheard := silent(rules, exposed)):
        click.echo(f"cannot fire with these pages, since their exporters are not there: {', '.join(unheard)}", err=True)
    for problem in problems:
        click.echo(f"{problem.rule}: {problem.text}" + (f" ({problem.hint})" if problem.hint else ""))
    _ask_promtool(file, text)
    if problems:
        raise ConfigError(f"{len(problems)} problems in {name}", "each is a line above")
    click.echo(f"{sum(len(g.get('rules', ())) for g in rules['groups'])} rules, no problem", err=True)


@command.command()
@click.option("--output", type=click.Path(path_type=Path), metavar="DIR", help="Keep the rules and their tests here.")
@click.pass_obj
def test(site: dict[str, Any], output: Path | None) -> None:
    """Run unit tests of every rule with promtool: each fires past its bound, not at it, and resolves.

    Alerts of the pack and of SLOs fire, stay quiet and survive a missed scrape, over series as exporters send them.
    """
    from analytics.catalog import load_all
    from rules import promtool, unit_tests
    from rules.build import rule_groups, to_yaml
    from rules.pack.build import pack_tests
    from rules.slo.unit_tests import slo_tests

    options, analyses = _read_options(**site), load_all()
    own = ("rules", rule_groups(analyses, options), unit_tests.unit_tests(analyses, options, "rules.yml"))
    with TemporaryDirectory() as scratch:
        folder = output or Path(scratch)
        for name, rules, tests in (own, *slo_tests(options), *pack_tests(options)):
            _write(folder / f"{name}.yml", to_yaml(rules))
            _write(folder / f"{name}_test.yml", to_yaml(tests, unit_tests.HEADER))
            click.echo(promtool.test_rules(folder / f"{name}_test.yml"))


@command.command()
@click.argument("file", type=click.Path(path_type=Path), required=False)
@click.option("--prometheus-url", metavar="URL", required=True, help="Prometheus, like http://127.0.0.1:9090.")
@click.pass_obj
def diff(site: dict[str, Any], file: Path | None, prometheus_url: str) -> int:
    """Hold a rule file (without FILE, the one that `build` would write) against what Prometheus has loaded.

    Exits with 1 where they differ. Groups of others are left alone.
    """
    from analytics.catalog import load_all
    from rules.build import read_rules, rule_file
    from rules.loaded import PATH, differences

    rules = rule_file(load_all(), _read_options(**site)) if file is None else read_rules(_read_file(file), str(file))
    found = differences(rules, _loaded(prometheus_url.rstrip("/") + PATH))
    for difference in found:
        click.echo(str(difference))
    if found:
        return ExitCode.FINDINGS
    click.echo("Prometheus has loaded these rules", err=True)
    return ExitCode.OK


@command.command()
@click.option("--alertmanager-url", metavar="URL", help="Send findings to this Alertmanager, http://127.0.0.1:9093.")
@click.option("--rules-dir", type=click.Path(path_type=Path), metavar="DIR", help="Write the rule file there.")
@click.option("--prometheus-url", metavar="URL", help="Have this Prometheus load it, http://127.0.0.1:9090.")
@zone_option
@store_options
@click.pass_obj
def push(site: dict[str, Any], /, alertmanager_url: str | None, rules_dir: Path | None, **given: Any) -> None:
    """Bring rules to Prometheus, or findings to Alertmanager where there is no Prometheus.

    With --rules-dir the rule file is checked, written as infractl.rules.yml, and --prometheus-url loads it. With
    --alertmanager-url (peers of a cluster separated by commas) the findings of every analysis are sent: run it every
    few minutes; a finding that lasts is sent again, one that is not resolves after 15 minutes. Each analysis looks back
    from now. An alert that Alertmanager refuses is named; the others are delivered.
    """
    if rules_dir is None and alertmanager_url is None:
        raise UsageError("there is nowhere to push to", "name --rules-dir DIR or --alertmanager-url URL")
    if rules_dir is not None:
        _install(rules_dir, given["prometheus_url"], _read_options(**site))
    if alertmanager_url is not None:
        _send_findings(alertmanager_url.split(","), _read_options(**site), given)


def _install(folder: Path, prometheus_url: str | None, options: "RuleOptions") -> None:
    """Write the rule file in one step, once promtool has nothing against it, and have Prometheus load it."""
    from analytics.catalog import load_all
    from rules.build import rule_file, to_yaml

    text = to_yaml(rule_file(load_all(), options))
    _ask_promtool(None, text)
    path = folder / "infractl.rules.yml"
    _write(path.with_suffix(".new"), text)
    path.with_suffix(".new").replace(path)
    click.echo(f"rules in {path}", err=True)
    if prometheus_url is None:
        click.echo("Prometheus loads them when it is told to: name --prometheus-url, or send it SIGHUP", err=True)
        return
    answer = _post(prometheus_url.rstrip("/") + "/-/reload")
    if not answer.is_success:
        raise SourceError(
            f"Prometheus at {prometheus_url} does not reload: {answer.status_code} {answer.text.strip()[:200]}",
            "start it with --web.enable-lifecycle, or send it SIGHUP; the file is written",
        )
    click.echo("Prometheus has loaded them", err=True)


def _send_findings(urls: list[str], options: "RuleOptions", given: dict[str, Any]) -> None:
    """Send to every peer, as Alertmanager asks its clients to; one that takes them is enough."""
    from datetime import UTC, datetime

    from analytics.catalog import load_all
    from infractl.access import open_access
    from rules.push import alerts, deliver

    analyses = load_all()
    access = open_access(given["data"], given["server"])
    try:
        results = [(a, access.analyze(a.name, {}, format_duration(a.lookback))) for a in analyses]
    finally:
        access.close()
    posts = alerts(results, options, datetime.now(UTC), zone=given["time_zone"])
    refused, silent = [], []
    for url in urls:
        try:
            refused = deliver(posts, _sender(url))
        except SourceError as error:
            silent.append(error)
    if len(silent) == len(urls):
        raise silent[0]
    for one in silent:
        click.echo(f"{one}; another peer took them", err=True)
    for alert, reason in refused:
        click.echo(f"refused: {alert['labels']}: {reason}")
    if refused:
        raise SourceError(f"Alertmanager refused {len(refused)} of {len(posts)} alerts", "each is a line above")
    click.echo(f"{len(posts)} alerts delivered", err=True)


def _post(url: str) -> "httpx.Response":
    import httpx

    from collector.prometheus.masking import shown

    try:
        return httpx.post(url, timeout=TIMEOUT_S, trust_env=False)
    except httpx.HTTPError as error:
        raise SourceError(shown(f"{url} does not answer: {error}"), "is Prometheus running there?") from error


def _loaded(url: str) -> dict[str, Any]:
    import json

    found: dict[str, Any] = json.loads(_fetch(url))
    return found


def _sender(url: str) -> "Callable[[Sequence[AlertPost]], str | None]":
    """Post alerts. Raises SourceError where nobody answers or the answer is neither yes nor 400."""
    import httpx

    from collector.prometheus.masking import shown
    from rules.push import PATH

    address = url.rstrip("/") + PATH

    def send(posts: "Sequence[AlertPost]") -> str | None:
        try:
            answer = httpx.post(address, json=list(posts), timeout=TIMEOUT_S)
            if answer.status_code == httpx.codes.BAD_REQUEST:
                return answer.text.strip() or "bad request"
            answer.raise_for_status()
        except httpx.HTTPError as error:
            fact = shown(f"Alertmanager at {url} does not take alerts: {error}")
            raise SourceError(fact, "name --alertmanager-url") from error
        return None

    return send


def _read_options(
    *,
    runbook_url: str | None,
    dashboard_url: str | None,
    job: str | None,
    label: tuple[str, ...],
    **durations: str | None,
) -> "RuleOptions":
    from infractl.slos import slo_texts
    from rules.alert import RuleOptions

    given: dict[str, Any] = {"runbook_url": runbook_url, "dashboard_url": dashboard_url, "job": job}
    given["slos"] = slo_texts(current_config())
    given |= {name: parse_duration(text) for name, text in durations.items() if text is not None}
    labels = _pairs("label", label, "team=platform")
    return RuleOptions(labels=labels, **{k: v for k, v in given.items() if v is not None})


def _pairs(option: str, texts: tuple[str, ...], example: str) -> dict[str, str]:
    pairs = [text.partition("=") for text in texts]
    for key, equals, _ in pairs:
        if not key or not equals:
            raise UsageError(f"--{option} {key!r} has no value", f"write it like --{option} {example}")
    return {key: value for key, _, value in pairs}


def _write_alertmanager(
    path: Path, webhook_url: str | None, deadman_url: str | None, told: dict[str, tuple[str, ...]]
) -> None:
    from analytics.result import Severity
    from rules.alertmanager import HEADER, PLACEHOLDER_URL, NotifyOptions, alertmanager_config
    from rules.build import to_yaml

    example = "https://hooks.example.com/alerts"
    severities = _pairs("severity", told["severity"], f"critical={example}")
    if unknown := sorted(severities.keys() - set(Severity)):
        raise UsageError(f"--severity {unknown[0]!r} is none", f"one of {', '.join(Severity)}")
    notify = NotifyOptions(
        webhook_url=webhook_url or PLACEHOLDER_URL,
        deadman_url=deadman_url,
        teams=_pairs("team", told["team"], f"platform={example}"),
        severities=severities,
    )
    _write(path, to_yaml(alertmanager_config(notify), HEADER))
    click.echo(f"Alertmanager's configuration in {path}", err=True)
    if webhook_url is None:
        click.echo(f"its webhook is a placeholder, {PLACEHOLDER_URL}: set --webhook-url", err=True)


def _ask_promtool(file: Path | None, text: str) -> None:
    from rules import promtool

    if not promtool.is_installed("promtool"):
        package = promtool.PACKAGES["promtool"]
        click.echo(f"promtool is not installed, so it has not checked the file: apt install {package}", err=True)
        return
    if file is not None:
        promtool.check_rules(file)
        return
    with TemporaryDirectory() as scratch:
        path = Path(scratch) / "rules.yml"
        _write(path, text)
        promtool.check_rules(path)


def _write(path: Path, text: str) -> None:
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text, encoding="utf-8")
    except OSError as error:
        raise UsageError(f"cannot write {path}: {error.strerror}") from error


def _read_file(path: Path) -> str:
    try:
        return path.read_text(encoding="utf-8")
    except (OSError, UnicodeDecodeError) as error:
        raise UsageError(f"cannot read {path}: {getattr(error, 'strerror', error)}") from error


def _fetch(source: str) -> str:
    """Text of a page or a file of one. Raises SourceError where an address does not answer with 200."""
    if not source.startswith(("http://", "https://")):
        return _read_file(Path(source))
    import httpx

    from collector.prometheus.masking import shown

    try:
        answer = httpx.get(source, timeout=TIMEOUT_S, follow_redirects=True)
        answer.raise_for_status()
    except httpx.HTTPError as error:
        fact = shown(f"{source} does not answer: {error}")
        raise SourceError(fact, "give the address of a /metrics page") from error
    return answer.text
