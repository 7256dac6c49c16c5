#!/usr/bin/env bash
# Counts what recovery asks of the kernel, as the discussion that led to PostgreSQL's relation size
# cache did: pgbench -i -s 100, pgbench -M prepared -T 60, a crash, then strace -c -f of
#
#   postgres        PostgreSQL's own recovery, to its end-of-recovery checkpoint
#   pgredo-off      pgredo, one record at a time, asking the kernel for every size
#   pgredo-on       the same with the nblocks cache
#   pgredo-page     pgredo as it runs by default
#
# of one crash image, side by side; the counters of pgredo-on, which must agree with strace, are
# the last column. Needs strace and a server (`make postgres`).
#
#   SCALE=100          pgbench's scale
#   SECONDS_RUN=60     how long it runs
#   IMAGE=DIR          recover this crash image instead of making one
#   PGREDO_PG_DIR=.pg  where the server trees are
set -euo pipefail
# A zone that needs no file: reading one is the time library's own affair.
export TZ=UTC0
cd "$(dirname "$0")/.."

scale=${SCALE:-100}
seconds=${SECONDS_RUN:-60}
bin=$(readlink -f "${PGREDO_PG_DIR:-.pg}/15/bin")
pgredo=$PWD/target/release/pgredo
results=$PWD/target/strace
[[ -x $bin/postgres ]] || { echo 'no PostgreSQL in .pg: run `make postgres` first' >&2; exit 1; }
[[ -x $pgredo ]] || { echo "no $pgredo: run \`make strace\`" >&2; exit 1; }

work=$(mktemp -d)
server=''
# Only the making of the crash is in a hurry; the recovery syncs what it writes, as pgredo does.
options=(-c fsync=off)
end_server() { # with signal $1; only ever the server that was started here
  [[ -n $server ]] || return 0
  kill "-$1" "$server" 2>/dev/null || true
  while kill -0 "$server" 2>/dev/null; do sleep 0.1; done
  server=''
}
trap 'end_server QUIT; rm -rf "$work"' EXIT

as_owner=()
if [[ $(id -u) == 0 ]]; then
  chown postgres: "$work"
  as_owner=(setpriv --reuid=postgres --regid=postgres --clear-groups)
fi
# The program at a place that the owner of the directories can reach.
install -m 755 "$pgredo" "$work/pgredo"
rm -rf "$results"
mkdir -p "$results"

start() { # data directory, log file, command in front of the server
  local data=$1 log=$2 tries=0
  shift 2
  "${as_owner[@]}" "$@" "$bin/postgres" -D "$data" -k "$work" -c listen_addresses= \
    -c port=5432 "${options[@]}" >"$log" 2>&1 &
  until grep -q 'ready to accept connections' "$log" && [[ -s $data/postmaster.pid ]]; do
    sleep 0.1
    if ((++tries > 36000)); then
      cat "$log" >&2
      return 1
    fi
  done
  server=$(head -n1 "$data/postmaster.pid")
}

make_crash() {
  echo "making the crash: pgbench -i -s $scale, pgbench -M prepared -T $seconds" >&2
  "${as_owner[@]}" "$bin/initdb" -D "$work/image" -A trust -U postgres -N --no-instructions \
    >/dev/null
  cat >>"$work/image/postgresql.conf" <<'CONF'
autovacuum = off
checkpoint_timeout = 1h
max_wal_size = 100GB
CONF
  start "$work/image" "$work/log"
  client=(-h "$work" -p 5432 -U postgres)
  "$bin/pgbench" "${client[@]}" -i -q -s "$scale" postgres 2>/dev/null
  "$bin/pgbench" "${client[@]}" -n -M prepared -T "$seconds" postgres | grep 'transactions'
  end_server QUIT
  rm -f "$work/image/postmaster.pid"
  options=()
}
if [[ -n ${IMAGE:-} ]]; then
  cp -a "$IMAGE" "$work/image"
  options=()
else
  make_crash
fi

trace() { # output file; the command follows
  local output=$1
  shift
  "${as_owner[@]}" strace -f -c -o "$work/trace" "$@"
  mv "$work/trace" "$output"
}
copy() { cp -a --reflink=auto "$work/image" "$work/$1"; }
wait_for_strace() { # strace writes its table when the last process has gone
  until [[ -s $work/trace ]]; do sleep 0.1; done
}

echo 'PostgreSQL recovers' >&2
copy postgres
start "$work/postgres" "$work/log" strace -f -c -o "$work/trace"
end_server QUIT
wait_for_strace
wait
mv "$work/trace" "$results/postgres"
rm -rf "$work/postgres"

replay() { # name of the result; options follow
  local name=$1
  shift
  echo "pgredo replays ($name)" >&2
  copy "$name"
  trace "$results/$name" "$work/pgredo" replay -D "$work/$name" --in-place \
    --stats json --stats-file "$work/counters" "$@" >&2
  mv "$work/counters" "$results/$name.json"
  rm -rf "${work:?}/$name"
}
replay pgredo-off --order record --nblocks-cache off
replay pgredo-on --order record --nblocks-cache on
replay pgredo-page

cd "$results"
cp pgredo-on.json counters-on
"$pgredo" strace-compare postgres pgredo-off pgredo-on pgredo-page counters-on | tee table.txt
