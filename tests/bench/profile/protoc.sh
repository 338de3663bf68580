#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
# Builds Debian's protoc with its debug data, -O2 -g, without stripping, into a
# directory, unless it is there: a real C++ program with some 80 MB of DWARF.
#
#   protoc.sh DIRECTORY
#
# The source is fetched with apt-get from where this machine's packages come
# from, with lists of its own: the system's settings are not changed. Takes
# some minutes on two CPUs. Prints the program's path on standard output.
set -euo pipefail

directory=$1
version=3.21.12
mkdir -p "$directory/apt/lists/partial" "$directory/apt/sources.list.d"
directory=$(cd "$directory" && pwd)
program=$directory/build/protoc
if [[ -x $program ]]; then
  echo "$program"
  exit 0
fi

# Debian's own sources of packages, as sources of sources.
SourcesOfSources() {
  local list
  for list in /etc/apt/sources.list.d/*.sources; do
    [[ -e $list ]] || continue
    grep -q debian-archive-keyring "$list" || continue
    sed 's/^Types:.*/Types: deb-src/' "$list" \
      > "$directory/apt/sources.list.d/$(basename "$list")"
  done
  : > "$directory/apt/sources.list"
  if [[ -e /etc/apt/sources.list ]]; then
    sed -n 's/^deb \(.*debian.*\)/deb-src \1/p' /etc/apt/sources.list \
      > "$directory/apt/sources.list"
  fi
}

AptGet() {
  apt-get -q -o "Dir::Etc::SourceList=$directory/apt/sources.list" \
    -o "Dir::Etc::SourceParts=$directory/apt/sources.list.d" \
    -o "Dir::State::Lists=$directory/apt/lists" "$@" >&2
}

if [[ ! -d $directory/source ]]; then
  SourcesOfSources
  AptGet update
  (cd "$directory" && AptGet source --download-only protobuf)
  rm -rf "$directory/unpacked"
  dpkg-source --no-check -x "$directory/protobuf_$version"-*.dsc \
    "$directory/unpacked" >&2
  mv "$directory/unpacked" "$directory/source"
fi
cmake -G Ninja -S "$directory/source" -B "$directory/build" \
  -DCMAKE_BUILD_TYPE=None -DCMAKE_CXX_FLAGS="-O2 -g" \
  -DBUILD_SHARED_LIBS=OFF -Dprotobuf_BUILD_SHARED_LIBS=OFF \
  -Dprotobuf_BUILD_TESTS=OFF >&2
cmake --build "$directory/build" --target protoc >&2
# protoc is a link to a name with the version.
[[ -x $program ]]
echo "$program"
