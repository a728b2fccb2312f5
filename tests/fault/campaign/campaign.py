# SPDX-License-Identifier: Apache-2.0
"""A fault at every system call: runs each operation once per fault, checks the invariants, and counts. See tools/fault_campaign."""
import argparse
import collections
import concurrent.futures
import os
import pathlib
import queue
import shutil
import signal
import subprocess
import sys
import tempfile
import time

import faults
import environment_faults
from invariant import Trial
from operations import OPERATIONS, Folder, Programs

SEED = 20261115
INSIDE = "KILN_FAULTS_INSIDE"  # set inside the private mount namespace


def arguments():
    parser = argparse.ArgumentParser(prog="tools/fault_campaign", description=__doc__)
    parser.add_argument("--programs", default="build/release/bin", help="directory of kiln, fault_inject and the others")
    parser.add_argument("--only", action="append", default=[], metavar="OPERATION", help="run only this operation")
    parser.add_argument("--fault", action="append", default=[], help="run only this fault, as printed for a failure")
    parser.add_argument("--sample", type=int, default=0, metavar="N", help="run a deterministic sample of N faults")
    parser.add_argument("--jobs", type=int, default=os.cpu_count())
    parser.add_argument("--keep", action="store_true", help="keep the directories")
    parser.add_argument("--list", action="store_true", help="list the operations")
    return parser.parse_args()


def inside_a_namespace():
    """Runs this script again in a mount namespace, which full disks need. Otherwise they are skipped with a message."""
    if os.environ.get(INSIDE):
        return os.environ[INSIDE] == "yes"
    unshare = ["unshare", "-m"] if os.getuid() == 0 else ["unshare", "-rm"]
    can = shutil.which("unshare") and subprocess.run([*unshare, "mount", "-t", "tmpfs", "faults", "/mnt"], check=False,
                                                     capture_output=True).returncode == 0
    os.environ[INSIDE] = "yes" if can else "no"
    if can:
        sys.stdout.flush()
        os.execvp("unshare", [*unshare, sys.executable, *sys.argv])
    return False


class Campaign:
    def __init__(self, options, scratch, may_mount):
        self.options = options
        self.scratch = pathlib.Path(scratch)
        self.may_mount = may_mount
        folder = pathlib.Path(options.programs).resolve()
        self.programs = Programs(folder / "kiln", folder / "fault_steps", folder / "fault_inject")
        self.slots = queue.SimpleQueue()
        for number in range(options.jobs):
            self.slots.put(self.scratch / f"slot{number}")
        self.outcomes = []  # (operation, outcome)
        self.not_met = 0

    def faults_of(self, operation, reference):
        if self.options.fault:
            return [environment_faults.parsed(text) or faults.parsed(text) for text in self.options.fault]
        planned = faults.planned(reference.calls, operation.every, operation.errors_at_most, operation.processes)
        if operation.processes != (1,):  # the same program as another operation's, with faults in the worker
            around = environment_faults.planned()
            if operation.real_compile:
                around = around[::3]
            planned += faults.storms(reference.calls)
            planned += [fault for fault in around if self.may_mount or fault.kind != "disk full"]
        return planned

    def prepare(self, operation):
        template = self.scratch / operation.name
        operation.prepare(Folder(template, self.programs))
        slot = self.slots.get()
        try:
            return template, Trial(operation, self.programs, template, slot).learn()
        finally:
            self.slots.put(slot)

    def trial(self, operation, template, reference, fault):
        slot = self.slots.get()
        try:
            return Trial(operation, self.programs, template, slot).run(reference, fault)
        finally:
            self.slots.put(slot)

    def run(self, operations):
        share = self.options.sample // len(operations) + 1 if self.options.sample else 0
        with concurrent.futures.ThreadPoolExecutor(self.options.jobs) as pool:
            for operation in operations:
                template, reference = self.prepare(operation)
                planned = self.faults_of(operation, reference)
                planned = faults.sample(planned, share, SEED) if share else planned
                tasks = [pool.submit(self.trial, operation, template, reference, fault) for fault in planned]
                try:
                    for task in tasks:
                        self.take(operation, task.result())
                except KeyboardInterrupt:
                    pool.shutdown(cancel_futures=True)
                    raise

    def take(self, operation, outcome):
        if not outcome.met:
            self.not_met += 1
            return
        self.outcomes.append((operation, outcome))
        if outcome.problems:
            print(f"FAILED {operation.name} {outcome.fault} at {outcome.where}: {'; '.join(outcome.problems)}")
            print(f"       to repeat: tools/fault_campaign --only {operation.name} --fault '{outcome.fault}' --keep", flush=True)


def print_summary(campaign, operations, seconds):
    """Prints the table and returns whether all faults were survived."""
    kinds = ["error", "half of the bytes", "kill -9", "EINTR storm", "descriptors", "disk full", "clock"]
    rows = []
    for operation in operations:
        its = [outcome for its_operation, outcome in campaign.outcomes if its_operation is operation]
        if not its:
            continue
        count = collections.Counter(outcome.fault.kind for outcome in its)
        right = sum(outcome.answer == "right" for outcome in its)
        failed = sum(bool(outcome.problems) for outcome in its)
        slowest = max(outcome.seconds for outcome in its)
        rows.append([operation.name, *(count[kind] for kind in kinds), len(its), right, len(its) - failed, f"{slowest:.2f} s"])
    total = ["all", *(sum(row[i] for row in rows) for i in range(1, len(kinds) + 4)),
             f"{max((outcome.seconds for _, outcome in campaign.outcomes), default=0):.2f} s"]
    heads = ["operation", *kinds, "faults", "correct", "survived", "slowest"]
    table = [heads, *rows, total]
    widths = [max(len(str(row[i])) for row in table) for i in range(len(heads))]
    for row in table:
        print("  ".join(str(cell).ljust(width) if i == 0 else str(cell).rjust(width) for i, (cell, width) in enumerate(zip(row, widths))))
    distinct = {(operation.name, str(outcome.fault)) for operation, outcome in campaign.outcomes}
    failed = sum(bool(outcome.problems) for _, outcome in campaign.outcomes)
    slow = max(campaign.outcomes, key=lambda pair: pair[1].seconds, default=None)
    print(f"distinct faults={len(distinct)} survived={len(campaign.outcomes) - failed} failed={failed} not reached={campaign.not_met} "
          f"slowest={slow[1].seconds if slow else 0:.2f} s seconds={seconds:.0f}")
    if slow:
        print(f"the slowest: {slow[0].name} {slow[1].fault} at {slow[1].where}")
    return failed == 0


def main():
    options = arguments()
    if options.list:
        for operation in OPERATIONS:
            print(f"{operation.name:22} {operation.about}")
        return 0
    may_mount = inside_a_namespace()
    chosen = [operation for operation in OPERATIONS if not options.only or operation.name in options.only]
    operations = [operation for operation in chosen if not options.sample or options.only or
                  (operation.in_sample and not operation.real_compile)]
    signal.signal(signal.SIGTERM, signal.default_int_handler)
    began = time.monotonic()
    scratch = tempfile.mkdtemp(prefix="kiln-faults-")
    try:
        campaign = Campaign(options, scratch, may_mount)
        if not may_mount:
            print("no mount namespace here: full disks are skipped")
        campaign.run(operations)
    except KeyboardInterrupt:
        print("interrupted: the following results are incomplete")
    finally:
        if options.keep:
            print(f"the directories are in {scratch}")
        else:
            shutil.rmtree(scratch, ignore_errors=True)
    return 0 if print_summary(campaign, operations, time.monotonic() - began) else 1
