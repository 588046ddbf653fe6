#!/bin/sh
# Runs every fuzz target for so many seconds each, from the corpus that is kept.
#   run.sh [SECONDS]      default 60; needs a nightly compiler and `cargo install cargo-fuzz`
# What is found lies in artifacts/TARGET; `cargo +nightly fuzz run TARGET FILE` shows it again, `cargo +nightly fuzz tmin
# TARGET FILE` makes it small. New inputs go to work/TARGET, which is not kept.
set -eu
seconds=${1:-60}
cd "$(dirname "$0")"
for target in open_and_walk operations; do
    mkdir -p "work/$target"
    cargo +nightly fuzz run --fuzz-dir . "$target" "work/$target" "corpus/$target" -- \
        -max_total_time="$seconds" -timeout=20 -rss_limit_mb=2048 -max_len=32768 -len_control=0 -print_final_stats=0 -print_funcs=0 -verbosity=0
done
