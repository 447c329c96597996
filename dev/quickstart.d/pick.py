"""Picks what ./quickstart needs out of the CLI's JSON on standard input.

    token              of `compute register`
    newest NAME        the execution id of the newest run of this name
    ended NAME=N...    succeeds when each name has N runs that are over, and none that is not
    cites N            of `analyse`: succeeds when it stands on N runs or more
    artefact           of `analyse`: the id of the patch; nothing where there is none
"""
import json
import sys

answer = json.load(sys.stdin)
what, names = sys.argv[1], sys.argv[2:]
executions = answer.get("executions", [])
if what == "token":
    print(answer["install_token"]["token"])
elif what == "newest":
    print(next(e["execution_id"] for e in executions if e.get("name") == names[0]))
elif what == "ended":
    for name, count in (word.split("=") for word in names):
        runs = [e for e in executions if e.get("name") == name]
        if len(runs) < int(count) or not all("ended_at" in e for e in runs):
            sys.exit(1)
elif what == "cites":
    sys.exit(len(answer["result"].get("evidence", [])) < int(names[0]))
elif what == "artefact":
    print(answer["result"].get("right_size", {}).get("artifact_id", ""))
else:
    sys.exit(f"nothing is called {what}")
