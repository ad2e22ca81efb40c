#!/bin/bash
# What a user of an installed UET finds, with no environment variable set: each line of TAP is one of them. Runs where that is
# installed, in a network namespace with lo.
#
#   installed.sh FOLDER [NEED...]
#
# FOLDER holds two_endpoints.cc and takes the output of the programs. NEED is what this machine has besides libfabric's programs:
# dpdk (our plug-in), compile (g++ and pkg-config), manual, tshark, scapy. The checks of the others are skipped.
set -u
unset ${!FI_*} PKG_CONFIG_PATH PYTHONPATH LD_LIBRARY_PATH
folder=$1
shift
needed=" $* "
number=0

# check NAME COMMAND...: passes when the command does; its output is shown when it does not.
check() {
  local name=$1
  shift
  number=$((number + 1))
  if "$@" >"$folder/output" 2>&1; then echo "ok $number - $name"
  else
    echo "not ok $number - $name"
    tail -n 40 "$folder/output" | sed 's/^/# /'
  fi
}

# check_if NEED NAME COMMAND...
check_if() {
  local need=$1
  shift
  if [[ $needed == *" $need "* ]]; then check "$@"
  else
    number=$((number + 1))
    echo "ok $number - $1 # SKIP $need: not here"
  fi
}

# wait_for_listener PID PORT: until that TCP port listens, or the process is gone.
wait_for_listener() {
  local hex
  hex=$(printf ':%04X 0+:0000 0A' "$2")
  while kill -0 "$1" 2>/dev/null && ! grep -qE "$hex" /proc/net/tcp /proc/net/tcp6; do sleep 0.05; done
}

# pingpong PORT CLIENT-SETTINGS... -- SERVER-SETTINGS...: settings are NAME=VALUE.
pingpong() {
  local port=$1 server client_settings=()
  shift
  while [ "$1" != -- ]; do
    client_settings+=("$1")
    shift
  done
  shift
  env "$@" timeout 120 fi_pingpong -p uet -e rdm -c -I 100 -B "$port" &
  server=$!
  wait_for_listener $server "$port"
  env "${client_settings[@]}" timeout 120 fi_pingpong -p uet -e rdm -c -I 100 -P "$port" 127.0.0.1 && wait $server
}

lists_the_provider() { fi_info -p uet | grep -q '^provider: uet' && fi_info -l | grep -q '^uet:'; }
over_udp() { pingpong 47592 -- ; }
over_memif() {
  local port="dpdk:net_memif0,socket=$folder/memif.sock,socket-abstract=no"
  pingpong 47593 FI_UET_PORT="$port,role=client" FI_UET_ADDR=10.78.0.2 -- \
    FI_UET_PORT="$port,role=server" FI_UET_ADDR=10.78.0.1
}
compiles_and_runs() {
  # shellcheck disable=SC2046
  g++ -std=c++20 -Wall -Wextra -Werror -o "$folder/two_endpoints" "$folder/two_endpoints.cc" \
    $(pkg-config --cflags --libs uet) && "$folder/two_endpoints"
}
every_tool_starts() {
  local tool
  for tool in uet-dump uet-fabric uet-keys uet-perf uet-sim uet-stat; do "$tool" --help >/dev/null || return 1; done
}
every_page_is_found() {
  local page
  for page in fi_uet uet.toml uet-events uet-dump uet-fabric uet-keys uet-perf uet-sim uet-stat; do man -w "$page" || return 1; done
}
tshark_knows_uet_once() { [ "$(tshark -G protocols | grep -cw uet)" = 1 ]; }
scapy_knows_uet() { /usr/bin/python3 -c 'import uet; print(uet.__file__)'; }

check "fi_info lists the provider" lists_the_provider
check "fi_pingpong" over_udp
check_if dpdk "fi_pingpong over a DPDK memif" over_memif
check_if compile "a program compiles against the library, and runs" compiles_and_runs
check "every tool starts" every_tool_starts
check_if manual "every manual page is found" every_page_is_found
check_if tshark "tshark knows the protocol" tshark_knows_uet_once
check_if scapy "scapy knows the protocol" scapy_knows_uet
echo "1..$number"
