"""Targets from DNS: a real name server on this machine, asked over UDP."""

import asyncio
import socket
import threading
from collections.abc import Iterator
from contextlib import contextmanager

import dns.asyncresolver
import dns.flags
import dns.message
import dns.rcode
import dns.rrset

from collector.prometheus.discovery.dns import DnsSource
from collector.prometheus.discovery.source import Found

Zone = dict[tuple[str, str], list[str] | int]
"""(name, type) → records, or a response code."""


@contextmanager
def name_server(zone: Zone) -> Iterator[dns.asyncresolver.Resolver]:
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as sock:
        sock.bind(("127.0.0.1", 0))
        sock.settimeout(0.05)
        over = threading.Event()

        def answer() -> None:
            while not over.is_set():
                try:
                    wire, sender = sock.recvfrom(4096)
                except TimeoutError:
                    continue
                sock.sendto(_answer(zone, dns.message.from_wire(wire)).to_wire(), sender)

        thread = threading.Thread(target=answer)
        thread.start()
        resolver = dns.asyncresolver.Resolver(configure=False)
        resolver.nameservers = ["127.0.0.1"]
        resolver.port = sock.getsockname()[1]
        resolver.lifetime = 2.0
        try:
            yield resolver
        finally:
            over.set()
            thread.join()


def _answer(zone: Zone, query: dns.message.Message) -> dns.message.Message:
    response = dns.message.make_response(query)
    response.flags |= dns.flags.RA
    question = query.question[0]
    kind = dns.rdatatype.to_text(question.rdtype)
    found = zone.get((question.name.to_text().rstrip("."), kind), [])
    if isinstance(found, int):
        response.set_rcode(dns.rcode.Rcode(found))
    elif found:
        response.answer.append(dns.rrset.from_text(question.name, 30, "IN", kind, *found))
    return response


def look(source: DnsSource) -> Found:
    return asyncio.run(source.refresh())


def addresses(found: Found) -> list[str]:
    return sorted(labels["__address__"] for group in found.groups for labels in group)


def test_srv_records_name_host_and_port() -> None:
    zone: Zone = {("_m._tcp.x", "SRV"): ["0 0 8000 a.x.", "0 0 8001 b.x."]}
    with name_server(zone) as resolver:
        found = look(DnsSource(("_m._tcp.x",), resolver=resolver))
    assert addresses(found) == ["a.x:8000", "b.x:8001"]
    (group,) = found.groups
    assert next(iter(group)) == {
        "__address__": "a.x:8000",
        "__meta_dns_name": "_m._tcp.x",
        "__meta_dns_srv_record_target": "a.x.",
        "__meta_dns_srv_record_port": "8000",
    }


def test_addresses_take_the_port_of_the_entry() -> None:
    zone: Zone = {("x", "A"): ["10.0.0.2", "10.0.0.1"], ("x", "AAAA"): ["2001:db8::1"]}
    with name_server(zone) as resolver:
        assert addresses(look(DnsSource(("x",), "A", 9400, resolver=resolver))) == ["10.0.0.1:9400", "10.0.0.2:9400"]
        found = look(DnsSource(("x",), "AAAA", 9400, resolver=resolver))
    assert addresses(found) == ["[2001:db8::1]:9400"]


def test_the_same_records_in_another_order_are_the_same_groups() -> None:
    zone: Zone = {("x", "A"): ["10.0.0.2", "10.0.0.1"]}
    with name_server(zone) as resolver:
        source = DnsSource(("x",), "A", 1, resolver=resolver)
        one = look(source)
        zone["x", "A"] = ["10.0.0.1", "10.0.0.2"]
        assert look(source).groups == one.groups


def test_a_server_that_fails_keeps_the_last_targets_of_that_name_only() -> None:
    zone: Zone = {("x", "A"): ["10.0.0.1"], ("y", "A"): ["10.0.1.1"]}
    with name_server(zone) as resolver:
        source = DnsSource(("x", "y"), "A", 1, resolver=resolver)
        look(source)
        zone["x", "A"] = dns.rcode.SERVFAIL
        zone["y", "A"] = ["10.0.1.2"]
        found = look(source)
    assert addresses(found) == ["10.0.0.1:1", "10.0.1.2:1"]
    assert [error.partition(":")[0] for error in found.errors] == ["x"]


def test_a_name_that_no_longer_exists_or_has_no_record_has_no_targets() -> None:
    zone: Zone = {("x", "A"): ["10.0.0.1"], ("y", "A"): ["10.0.0.2"]}
    with name_server(zone) as resolver:
        source = DnsSource(("x", "y"), "A", 1, resolver=resolver)
        look(source)
        zone["x", "A"] = dns.rcode.NXDOMAIN
        zone["y", "A"] = []
        found = look(source)
    assert addresses(found) == []
    assert found.errors == ("x: no such name",)


def test_no_answer_at_all_is_an_error_within_the_interval() -> None:
    resolver = dns.asyncresolver.Resolver(configure=False)
    resolver.nameservers = ["127.0.0.1"]
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as silent:
        silent.bind(("127.0.0.1", 0))
        resolver.port = silent.getsockname()[1]
        (error,) = look(DnsSource(("x",), "A", 1, refresh_s=0.2, resolver=resolver)).errors
    assert error.startswith("x: ")
