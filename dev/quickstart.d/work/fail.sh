#!/bin/sh
# Fails as a run does whose data is not there.
echo "reading configuration"
echo "error: no such dataset: train-2026" >&2
exit 3
