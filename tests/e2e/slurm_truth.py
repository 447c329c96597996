"""What Slurm itself says of a job's runs (sacct), and whether a stored execution says the same."""

import base64
import datetime
import re
import secrets
import time

from harness import wait_until

# Allocation rows and step rows have the same columns.
FIELDS = ("JobID", "JobIDRaw", "JobName", "User", "Account", "Partition", "QOS", "State", "ExitCode", "DerivedExitCode",
          "Submit", "Eligible", "Start", "End", "NodeList", "AllocTRES", "ReqTRES", "TimelimitRaw", "WorkDir",
          "Comment", "Suspended", "NTasks", "TotalCPU", "MaxRSS", "Reservation", "UID")
FINAL = {"COMPLETED", "FAILED", "TIMEOUT", "OUT_OF_MEMORY", "CANCELLED", "NODE_FAIL", "PREEMPTED", "REQUEUED",
         "BOOT_FAIL", "DEADLINE"}
STATUS = {"COMPLETED": ("SUCCEEDED", "SUCCESS"), "FAILED": ("FAILED", "FAILURE"), "TIMEOUT": ("FAILED", "TIMEOUT"),
          "OUT_OF_MEMORY": ("FAILED", "OUT_OF_MEMORY"), "CANCELLED": ("CANCELLED", "CANCELLED"),
          "NODE_FAIL": ("FAILED", "FAILURE"), "PREEMPTED": ("CANCELLED", "CANCELLED"),
          "REQUEUED": ("CANCELLED", "CANCELLED"), "DEADLINE": ("FAILED", "TIMEOUT")}
UNITS = {"": 1, "K": 1 << 10, "M": 1 << 20, "G": 1 << 30, "T": 1 << 40}


def sacct(lab, *jobs, since="now-1day"):
    """Rows of these jobs (of all without any) with their steps under "steps", oldest run first."""
    token = f"<{secrets.token_hex(8)}>"
    chosen = [f"--jobs={','.join(str(job) for job in jobs)}"] if jobs else []
    done = lab.command("sacct", "--allusers", "--duplicates", "--parsable2", "--noheader", f"--starttime={since}",
                       f"--delimiter={token}", f"--format={','.join(FIELDS)},Cluster", *chosen,
                       env={"TZ": "UTC", "SLURM_TIME_FORMAT": "%s"})
    rows, text = [], done.stdout
    # The cluster's name is known and comes last: where a row ends is certain, whatever a name has in it.
    for record in text.split(f"{token}{lab.cluster}\n".encode())[:-1]:
        values = record.split(token.encode())
        assert len(values) == len(FIELDS), record
        row = {name: value.decode(errors="surrogateescape") for name, value in zip(FIELDS, values)}
        if "." in row["JobID"]:
            owner = [job for job in rows if job["JobID"] == row["JobID"].split(".")[0]][-1]
            owner["steps"].append(row)
        else:
            rows.append({**row, "steps": []})
    return sorted(rows, key=lambda row: (int(row["Submit"]), int(row["JobIDRaw"])))


def ended_rows(lab, *jobs, runs=1, wait=40):
    """sacct's rows of these jobs, once there are so many and each is final."""
    def final():
        found = sacct(lab, *jobs)
        return found if len(found) >= runs and all(is_final(row) for row in found) else None
    return wait_until(f"sacct has {runs} ended runs of {jobs}", wait, final, 0.5)


def now(lab, row):
    """The row as sacct has it now: what became of steps is told after the end of their job."""
    return next(new for new in sacct(lab, row["JobID"])
                if (new["JobID"], new["Submit"]) == (row["JobID"], row["Submit"]))


def eventually(wait, claim):
    """What `claim()` gives once it holds; after `wait` seconds its last failure is the test's."""
    deadline = time.monotonic() + wait
    while True:
        try:
            return claim()
        except (AssertionError, KeyError, IndexError, StopIteration):
            if time.monotonic() > deadline:
                raise
        time.sleep(0.5)


def word(state):
    return state.split()[0]


def is_final(row):
    return word(row["State"]) in FINAL and row["End"].isdigit()


def seconds(text):
    """Epoch seconds of an API time, of sacct's number, or None for sacct's words."""
    if text is None:
        return None
    if "T" in text and "-" in text:
        return int(datetime.datetime.fromisoformat(text.replace("Z", "+00:00")).timestamp())
    return int(text) if text.isdigit() and int(text) > 0 else None


def tres(text):
    """{"cpu": 2, "mem": bytes, "gres/gpu": 1, ...}"""
    found = {}
    for part in filter(None, text.split(",")):
        name, value = part.split("=")
        number, unit = re.fullmatch(r"([0-9.]+)([KMGT]?)", value).groups()
        found[name] = int(float(number) * UNITS[unit]) if name == "mem" else int(float(number))
    return found


def hosts(text):
    """Our lab's node lists: "xnode[1-2,4]", "xnode3"."""
    found = []
    for prefix, ranges, single in re.findall(r"([^\[\],]+)\[([^\]]+)\]|([^\[\],]+)", text):
        if single:
            found.append(single)
        for part in filter(None, ranges.split(",")):
            first, _, last = part.partition("-")
            found += [f"{prefix}{number}" for number in range(int(first), int(last or first) + 1)]
    return found if text != "None assigned" else []


def exact(execution, field):
    """The bytes of a text field, also where they are no UTF-8."""
    raw = execution.get("raw_bytes", {}).get(field)
    return base64.b64decode(raw) if raw else execution.get(field, "").encode()


def as_stored(data):
    """What slurmdbd makes of a text: no double quotes, only UTF-8, at most 255 bytes of a name."""
    text = data[:255].replace(b'"', b"`").decode(errors="replace").replace("\ufffd", "?")
    return text.encode()


def code_and_signal(text):
    """(exit code, signal) of "3:0"; a step that a requeue ended has an empty field."""
    code, _, number = text.partition(":")
    return int(code or 0), int(number or 0)


def has_started(row):
    """sacct gives a job that was cancelled while it waited the time of that as its start."""
    return word(row["State"]) != "CANCELLED" or row["NodeList"] != "None assigned"


def assert_same_run(test, execution, row):
    """The stored execution says of this run what sacct says."""
    state = word(row["State"])
    status, outcome = STATUS[state]
    test.assertEqual(execution["native_state"], state)
    test.assertEqual(execution["status"], f"EXECUTION_STATUS_{status}")
    test.assertEqual(execution["outcome"], f"EXECUTION_OUTCOME_{outcome}")
    test.assertEqual(execution["native_id"], row["JobID"])
    assert_same_exit(test, execution, row)
    for ours, theirs in (("submitted_at", "Submit"), ("started_at", "Start"), ("ended_at", "End")):
        if theirs == "Start" and not heard_of_its_start(row):
            continue  # we may know it all the same
        known = seconds(row[theirs]) if theirs != "Start" or has_started(row) else None
        test.assertEqual(seconds(execution.get(ours)), known, ours)
    test.assertEqual(execution.get("user", ""), row["User"])
    test.assertEqual(execution.get("account", ""), row["Account"])
    if heard_of_its_start(row):
        assert_same_request(test, execution, row)
    else:
        for field in ("name", "queue", "qos", "requested"):
            test.assertTrue(execution.get(field), field)
    assert_same_steps(test, execution, row)


def heard_of_its_start(row):
    """False for a job of which slurmdbd heard the end first: start and nodes, of a short one also name, partition,
    QOS and what it asked for, are lost to accounting then. They are not lost to us."""
    never_ran = word(row["State"]) in ("CANCELLED", "DEADLINE")
    return row["Partition"] != "" and (
        never_ran or (row["NodeList"] not in ("", "None assigned") and seconds(row["Start"]) is not None))


def assert_same_request(test, execution, row):
    test.assertEqual(execution.get("queue", ""), row["Partition"])
    test.assertEqual(execution.get("qos", ""), row["QOS"])
    for ours, theirs in (("name", "JobName"), ("working_directory", "WorkDir"), ("comment", "Comment")):
        test.assertEqual(as_stored(exact(execution, ours)), row[theirs].encode(errors="surrogateescape"), ours)
    test.assertEqual(sorted(execution.get("nodes", [])), sorted(hosts(row["NodeList"])))
    assert_same_resources(test, execution.get("requested", {}), tres(row["ReqTRES"]))
    assert_same_resources(test, execution.get("allocated", {}), tres(row["AllocTRES"]))
    if row["TimelimitRaw"].isdigit():
        test.assertEqual(int(execution["requested"]["walltime_seconds"]), 60 * int(row["TimelimitRaw"]))


def assert_same_exit(test, ours, row):
    """sacct takes 128 from codes that are not below it: a shell's 137 reads 9. Its signal 125 is none: memory.
    Of a job that Slurm itself ended it forgets the signal, which squeue tells."""
    code, number = code_and_signal(row["ExitCode"])
    if word(row["State"]) in ("CANCELLED", "TIMEOUT", "PREEMPTED", "REQUEUED", "NODE_FAIL") and number == 0:
        test.assertIn(ours.get("signal"), (None, 0, 9, 15))
    elif number == 0:
        test.assertEqual(ours.get("exit_code", 0) % 128, code)
        test.assertFalse(ours.get("signal"))
    elif number < 65:
        test.assertEqual(ours.get("signal"), number)


def assert_same_resources(test, ours, theirs):
    for field, name in (("cpu_cores", "cpu"), ("memory_bytes", "mem"), ("node_count", "node"), ("gpu_count", "gres/gpu")):
        if name in theirs:
            test.assertEqual(int(ours[field]), theirs[name], field)


def assert_same_steps(test, execution, row):
    ours = {step["id"]: step for step in execution.get("steps", [])}
    theirs = {step["JobID"].split(".", 1)[1]: step for step in row["steps"]}
    test.assertEqual(sorted(ours), sorted(theirs))
    for step_id, step in theirs.items():
        test.assertEqual(ours[step_id]["native_state"], word(step["State"]), f"step {step_id}")
        assert_same_exit(test, ours[step_id], step)
        test.assertEqual(seconds(ours[step_id].get("started_at")), seconds(step["Start"]), f"step {step_id}")
        test.assertEqual(seconds(ours[step_id].get("ended_at")), seconds(step["End"]), f"step {step_id}")
