#!/usr/bin/env bash
# The scenarios of the simulated device, through the functions of the CUDA driver: the engine over
# crates/cuda over the stand-in of crates/cuda-standin, recorded and checked.
#
#   scripts/scenarios.sh [SEEDS]
#
# Left out are scenarios that need more of the simulated device than the driver has: virtual time,
# faults that are taken back, streams and memory as the test wants them, another mode of work
# (`threaded` below runs those), callbacks that come before a wait returns, the simulated device's
# words for an error, and a new driver for each seed, which a lost one needs.
set -euo pipefail
cd "$(dirname "$0")/.."
seeds=${1:-20}
export CARGO_TARGET_DIR="${CARGO_TARGET_DIR:-$PWD/target}"
# Modules of the simulated device's tests; the others test what only that one has.
modules=(order host exchange staging memory lifecycle programs errors threads)
# Of the workspace, as `make test-rust` builds them: with other features all would be built again.
built=$(cargo test --quiet --locked --workspace --test=scenarios --test=faults --no-run --message-format=json)
# A file of an older build may lie beside it.
library=$(grep -o '"[^"]*libmxrt_standin.so"' <<<"$built" | head -n 1 | tr -d '"')
folder=$PWD/build/standin
mkdir -p "$folder"
for name in libcuda.so libcuda.so.1; do
  ln -sf "$library" "$folder/$name"
done

program=$(grep -F "#mxrt-sim@" <<<"$built" | grep -o '"executable":"[^"]*/scenarios-[^"]*"' | cut -d'"' -f4)

export LD_LIBRARY_PATH=$folder MXRT_SIM_THROUGH=$folder/libcuda.so.1 MXRT_SIM_SEEDS=$seeds
export STANDIN_DEVICES=2 STANDIN_HOST_MEMORY=1

threaded=(order::two_threads_one_stream host::a_parked_op_blocks_no_worker
  host::a_wait_for_the_device_can_be_given_up host::kinds_serve_devices_differently
  programs::random_programs_in_threads staging::threads_copy_in_and_out_at_the_same_time
  threads::no_stream_and_no_thread_waits_without_a_reason)
left_out=(
  # virtual time
  copies_overlap_with_kernels pieces_of_a_copy_overlap copies_and_kernels_overlap
  # faults, memory, streams of the simulated device
  a_copy_that_fails_in_the_middle_takes_nothing_with_it pinned_staging_reuse oom_trim_retry
  dlpack_export_of_a_failed_or_unknown_thing_is_refused dlpack_export_streams
  dlpack_export_to_write_waits_for_readers dlpack_import_orders everything_is_back_when_it_is_quiet
  dlpack_export_without_synchronisation_ends_behind_the_default_stream
  an_event_of_a_library_that_the_driver_never_answers_for_costs_the_device_nothing
  every_export_to_a_handle_is_ordered_anew the_default_stream_of_a_thread_is_ordered_by_the_legacy_one
  # a world that ends, or that is not the driver's
  calls_see_all_old_or_all_new_parameters_while_others_update_them plan_lease
  devices_that_do_not_exist_are_refused_at_the_push shutdown_with_work_pending
  a_wait_without_a_reason_is_noticed_among_threads
  # callbacks come from a thread of their own
  guards_and_callbacks_wait_for_the_device
  # words, and lost devices
  error_in_complete error_in_on_start launch_error_poisons_outputs sticky_error_marks_device_lost
  a_device_that_cannot_mark_the_end_of_work_is_lost a_device_that_refuses_every_wait_is_lost
  a_lost_device_hangs_no_thread
  random_programs_on_a_device_that_is_lost a_refused_allocation_is_tried_again_after_trimming
  # they make waits disappear, which the driver does not
  an_engine_that_ignores_events_is_caught random_programs_without_events_are_caught
)

# run MODE MEMORY ARGUMENT...: some tests, one after the other: they share the driver of the process.
run() {
  local mode=$1 memory=$2
  shift 2
  (cd crates/sim && STANDIN_MODE=$mode STANDIN_MEMORY_MB=$memory MXRT_TEST_SECONDS=300 \
    ../../scripts/watch-test.sh "$program" --quiet --test-threads=1 "$@")
}

for module in "${modules[@]}"; do
  run scheduled 1 "$module::" "${threaded[@]/#/--skip=}" "${left_out[@]/#/--skip=}"
done
run threaded 4096 --exact "${threaded[@]}"
