#!/bin/sh
# Install the Debian packages that the tests run for real, or say which are missing.
# With arguments: exactly these packages. Only packages that are missing are asked for.
set -eu

missing=""
for package in ${*:-prometheus prometheus-alertmanager prometheus-node-exporter chromium}; do
    dpkg-query -W -f='${Status}' "$package" 2>/dev/null | grep -q "install ok installed" || missing="$missing $package"
done
[ -n "$missing" ] || exit 0
if [ "$(id -u)" -ne 0 ]; then
    echo "not installed:$missing; the tests that need them are skipped (as root: apt-get install$missing)" >&2
    exit 0
fi
export DEBIAN_FRONTEND=noninteractive
# A service must not start at install: tests start their own, on free ports of the loopback interface.
policy=/usr/sbin/policy-rc.d
if [ ! -e "$policy" ]; then
    printf '#!/bin/sh\nexit 101\n' > "$policy"
    chmod +x "$policy"
    trap 'rm -f "$policy"' EXIT
fi
apt-get update -qq
# shellcheck disable=SC2086 - a list of words
apt-get install -y -qq --no-install-recommends $missing >/dev/null
