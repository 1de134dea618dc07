# SPDX-License-Identifier: GPL-2.0-or-later
"""Runs commands inside a test machine: a line of JSON comes in by a virtio port, one goes back."""

import glob
import json
import subprocess

ENVIRONMENT = {"PATH": "/usr/sbin:/usr/bin:/sbin:/bin", "HOME": "/root", "LANG": "C.UTF-8"}


def answer(request):
    try:
        done = subprocess.run(request["arguments"], input=request["input"], capture_output=True, text=True,
                              errors="replace", timeout=request["timeout"], env=ENVIRONMENT)
        return {"status": done.returncode, "stdout": done.stdout, "stderr": done.stderr}
    except subprocess.TimeoutExpired:
        return {"status": None, "stdout": "", "stderr": ""}
    except OSError as e:
        return {"status": 127, "stdout": "", "stderr": str(e)}


def main():
    with open(glob.glob("/dev/vport*")[0], "r+b", buffering=0) as port:
        for line in port:
            reply = json.dumps(answer(json.loads(line))).encode() + b"\n"
            while reply:
                reply = reply[port.write(reply):]


main()
