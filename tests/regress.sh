#!/usr/bin/env bash
# PostgreSQL's own regression suite as a judge: a server runs it (with autovacuum, parallel
# queries, in-place tablespaces, everything), crashes at its end, and the whole log since an image
# kept aside before the suite is recovered once by PostgreSQL and once by pgredo. Every file must
# be the same, and waldump must print of the whole log what pg_waldump prints. Needs a server
# (`make postgres`), and a C compiler for the functions that some of the tests call.
#
#   CONSISTENCY=all    wal_consistency_checking while the suite runs: images of every page after
#                      every record, about 9 GB of WAL instead of 300 MB (default: none)
#   SOURCE=DIR         unpacked source of PostgreSQL 15 (default: the distribution's, by apt-get)
#   KEEP=1             do not remove the directories at the end
#   PGREDO_PG_DIR=.pg  where the server trees are
#
# A failed test of the suite is no failure here (a minor release newer than the source changes what
# some of them print): what counts is the log it leaves.
set -euo pipefail
cd "$(dirname "$0")/.."

bin=$(readlink -f "${PGREDO_PG_DIR:-.pg}/15/bin")
target=$(readlink -f "${CARGO_TARGET_DIR:-target}")
pgredo=$target/release/pgredo
[[ -x $bin/postgres ]] || { echo 'no PostgreSQL in .pg: run `make postgres` first' >&2; exit 1; }
[[ -x $pgredo ]] || { echo "no $pgredo: run \`make test-regress\`" >&2; exit 1; }

say() { printf '%(%T)T regress: %s\n' -1 "$*" >&2; }

work=$(mktemp -d)
server=''
end_server() { # with signal $1; only ever the server that was started here
  [[ -n $server ]] || return 0
  kill "-$1" "$server" 2>/dev/null || true
  while kill -0 "$server" 2>/dev/null; do sleep 0.1; done
  server=''
}
finish() {
  end_server QUIT
  if [[ -n ${KEEP:-} ]]; then say "everything is in $work"; else rm -rf "$work"; fi
}
trap finish EXIT

as_owner=()
if [[ $(id -u) == 0 ]]; then
  chown postgres: "$work"
  as_owner=(setpriv --reuid=postgres --regid=postgres --clear-groups)
fi
# The program at a place that the owner of the directories can reach.
install -m 755 "$pgredo" "$work/pgredo"

# The distribution's source, through a private apt configuration: the machine's own package
# sources with their deb-src side switched on. Kept in target for the next run.
fetch_source() {
  local apt=$work/apt file options
  mkdir -p "$apt"/{lists/partial,cache/archives/partial,parts}
  for file in /etc/apt/sources.list /etc/apt/sources.list.d/*; do
    case $file in
      *.list) sed -n 's/^deb /deb-src /p' "$file" 2>/dev/null >"$apt/parts/${file##*/}" || true ;;
      *.sources) sed 's/^Types:.*/Types: deb-src/' "$file" >"$apt/parts/${file##*/}" ;;
    esac
  done
  options=(-q -o Dir::Etc::SourceList=/dev/null -o Dir::Etc::SourceParts="$apt/parts"
    -o Dir::State::Lists="$apt/lists" -o Dir::Cache="$apt/cache" -o APT::Sandbox::User=root)
  mkdir -p "$target/postgresql-source"
  # A source that does not answer may be one of the others.
  apt-get "${options[@]}" update >&2 || true
  (cd "$target/postgresql-source" &&
    apt-get "${options[@]}" source --download-only postgresql-15 >&2)
}
find_source() {
  local archive
  if [[ -n ${SOURCE:-} ]]; then
    echo "$SOURCE"
    return
  fi
  archive() { find "$target/postgresql-source" -name '*.orig.tar.*' ! -name '*.asc' -print -quit; }
  [[ -d $target/postgresql-source && -n $(archive) ]] || fetch_source
  mkdir -p "$work/source"
  tar -xf "$(archive)" -C "$work/source" --strip-components=1 --wildcards '*/src/test/regress'
  echo "$work/source"
}

# The suite with what it loads: regress.so of its own, and two libraries of contrib/spi.
prepare_suite() {
  local source library
  source=$(find_source)
  cp -r "$source/src/test/regress" "$work/suite"
  mkdir -p "$work/lib" "$work/output"
  for library in autoinc refint; do
    cp "$("$bin/pg_config" --pkglibdir)/$library.so" "$work/lib" || say "no $library.so"
  done
  "${CC:-cc}" -O2 -fPIC -shared -fwrapv -fno-strict-aliasing -w \
    -I"$("$bin/pg_config" --includedir-server)" -I"$work/suite" \
    "$work/suite/regress.c" -o "$work/lib/regress.so" ||
    say 'regress.so is not to be had; the tests that call its functions will fail'
  chmod -R a+rX "$work"
  [[ $(id -u) != 0 ]] || chown -R postgres: "$work/suite" "$work/output"
}

start() { # data directory, log file; options follow
  local data=$1 log=$2
  shift 2
  "${as_owner[@]}" "$bin/postgres" -D "$data" -k "$work" -c listen_addresses= -c port=5432 \
    -c fsync=off "$@" >"$log" 2>&1 &
  until grep -q 'ready to accept connections' "$log" && [[ -s $data/postmaster.pid ]]; do
    sleep 0.1
    if ! kill -0 $! 2>/dev/null; then
      cat "$log" >&2
      return 1
    fi
  done
  server=$(head -n1 "$data/postmaster.pid")
}

run_suite() {
  local pgxs
  pgxs=$(dirname "$(dirname "$("$bin/pg_config" --pgxs)")")
  # As the suite's own temporary server is set up, and nothing of the log may go.
  "${as_owner[@]}" "$bin/initdb" -D "$work/run" -A trust -U postgres -N --no-locale -E UTF8 \
    --no-instructions >/dev/null
  cat >>"$work/run/postgresql.conf" <<CONF
max_prepared_transactions = 10
max_wal_size = 50GB
wal_keep_size = 50GB
checkpoint_timeout = 1h
wal_consistency_checking = '${CONSISTENCY:-}'
dynamic_shared_memory_type = mmap
CONF
  start "$work/run" "$work/run.log" -c autovacuum=off -c log_min_messages=warning
  "$bin/psql" -X -q -h "$work" -p 5432 -U postgres -d postgres -c CHECKPOINT
  end_server QUIT
  "${as_owner[@]}" cp -a "$work/run" "$work/image"
  rm -f "$work/image/postmaster.pid"

  say "the suite runs${CONSISTENCY:+, with wal_consistency_checking=$CONSISTENCY}"
  start "$work/run" "$work/run.log" -c log_min_messages=warning
  (cd "$work/output" && PGTZ=PST8PDT PGDATESTYLE='Postgres, MDY' "${as_owner[@]}" \
    "$pgxs/test/regress/pg_regress" --inputdir="$work/suite" --outputdir="$work/output" \
    --bindir="$bin" --dlpath="$work/lib" --host="$work" --port=5432 --user=postgres \
    --max-concurrent-tests=20 --schedule="$work/suite/parallel_schedule" \
    >"$work/suite.log" 2>&1) || true
  end_server QUIT
  tail -n 20 "$work/suite.log" | grep -E 'tests (passed|failed)' >&2 || tail "$work/suite.log" >&2
  # The log belongs to the image now; what the suite left else is of no use.
  rm -rf "$work/image/pg_wal"
  mv "$work/run/pg_wal" "$work/wal"
  rm -rf "$work/run"
  say "$(du -sh "$work/wal" | cut -f1) of WAL"
}

# A copy of the image with the log. Recovery writes to the last segments only, so all others are
# shared, and read-only: whoever writes to them gets an error.
copy_image() {
  local copy=$work/$1 segments
  "${as_owner[@]}" cp -a "$work/image" "$copy"
  "${as_owner[@]}" mkdir -m 700 "$copy/pg_wal" "$copy/pg_wal/archive_status"
  mapfile -t segments < <(cd "$work/wal" && ls | grep -E '^[0-9A-F]{24}$')
  "${as_owner[@]}" cp -al "${segments[@]/#/$work/wal/}" "$copy/pg_wal"
  for segment in "${segments[@]: -3}"; do
    "${as_owner[@]}" cp --remove-destination -p "$work/wal/$segment" "$copy/pg_wal/$segment"
  done
}
share_wal() {
  local segments
  mapfile -t segments < <(cd "$work/wal" && ls | grep -E '^[0-9A-F]{24}$')
  ((${#segments[@]} <= 3)) || (cd "$work/wal" && chmod a-w "${segments[@]:0:${#segments[@]}-3}")
}

failures=0
check() { # what it is, command
  local what=$1
  shift
  if "$@"; then
    say "$what: good"
  else
    say "$what: FAILED"
    failures=$((failures + 1))
  fi
}

# The server was stopped right after its recovery, so its cluster state is all that differs.
same_by_pgredo() {
  local found state='global/pg_control: Database cluster state: in production in A, '
  found=$("$pgredo" compare "$work/postgres" "$work/pgredo-data" || true)
  tail -n 1 <<<"$found" >&2
  [[ $(head -n -1 <<<"$found") == "$state"* &&
    $(wc -l <<<"$found") == 2 ]] || { echo "$found" >&2; return 1; }
}

same_waldump() {
  local redo
  redo=$("$pgredo" control "$work/image" | sed -n "s/^Latest checkpoint's REDO location: *//p")
  # pg_waldump ends with an error where the log ends, which is no difference.
  cmp <("$bin/pg_waldump" -p "$work/wal" -s "$redo" 2>/dev/null) \
    <("$pgredo" waldump -p "$work/wal" -s "$redo" 2>/dev/null)
}

prepare_suite
run_suite
share_wal

say 'PostgreSQL recovers'
copy_image postgres
start "$work/postgres" "$work/postgres.log" -c autovacuum=off -c max_logical_replication_workers=0 \
  -c wal_consistency_checking= -c log_min_messages=log
end_server QUIT
grep -E 'redo (starts|done)' "$work/postgres.log" >&2

say 'pgredo recovers'
copy_image pgredo-data
check replay "${as_owner[@]}" "$work/pgredo" replay -D "$work/pgredo-data" --in-place --no-sync
check 'comparison by pgredo' same_by_pgredo
check 'comparison by the tests' "${CARGO:-cargo}" test --release -q --test compare_directories -- \
  "$work/postgres" "$work/pgredo-data"
check waldump same_waldump
if "$pgredo" verify --help >/dev/null 2>&1; then
  copy_image verified
  check verify "$work/pgredo" verify -D "$work/verified"
fi
((failures == 0))
