"""Configuration files of a lab: slurm.conf, slurmdbd.conf, cgroup.conf, gres.conf, env."""

import pathlib
import shlex
import socket

LAB_USER = "slurmlab"


def HostName():
    """Slurm compares SlurmctldHost and DbdHost with this: what `hostname -s` says."""
    return socket.gethostname().split(".")[0]


def CgroupPlugin(choice):
    if choice == "auto":
        choice = "v2" if pathlib.Path("/sys/fs/cgroup/cgroup.controllers").exists() else "v1"
    return f"cgroup/{choice}"


def CgroupConf(options):
    lines = {
        "CgroupPlugin": CgroupPlugin(options.cgroup),
        "ConstrainRAMSpace": "yes",
        "ConstrainSwapSpace": "yes",
        # The default floor of 30 MB is kept; a job of a test that asks for less is not what fails.
        "AllowedRAMSpace": "100",
    }
    if lines["CgroupPlugin"] == "cgroup/v1":
        lines["CgroupAutomount"] = "no"
    elif not pathlib.Path("/run/systemd/system").exists():
        lines["IgnoreSystemd"] = "yes"
    return "".join(f"{key}={value}\n" for key, value in lines.items())


def GresConf(state, options, nodes):
    """GPUs that are counted only. Slurm discards a GPU that has no device file, so each has a twin of
    /dev/null; access is not constrained. Jobs see the indices that they would see of real ones."""
    if not options.gpus:
        return ""
    return "".join(f"NodeName={node} AutoDetect=off Name=gpu File={state}/gpus/card[0-{options.gpus - 1}]\n"
                   for node in nodes)


def SlurmdbdConf(state, ports):
    return f"""AuthType=auth/munge
AuthInfo=socket={state}/munge/munge.sock
DbdHost={HostName()}
DbdAddr=127.0.0.1
DbdPort={ports["slurmdbd"]}
SlurmUser=root
PidFile={state}/run/slurmdbd-own.pid
StorageType=accounting_storage/mysql
StorageHost=localhost
StorageUser=root
StorageLoc=slurm_acct_db
"""


def LightPlaces(state, ports):
    """Where the light lab's daemons are and keep their files: all on this host, below `state`."""
    return {
        "SlurmctldHost": f"{HostName()}(127.0.0.1)",
        "SlurmctldPort": ports["slurmctld"],
        "SlurmUser": "root",
        "AuthInfo": f"socket={state}/munge/munge.sock",
        "StateSaveLocation": f"{state}/ctld",
        "SlurmdSpoolDir": f"{state}/spool-%n",
        "SlurmctldPidFile": f"{state}/run/slurmctld-own.pid",
        "SlurmdPidFile": f"{state}/run/slurmd-%n-own.pid",
        "AccountingStorageHost": "127.0.0.1",
        "AccountingStoragePort": ports["slurmdbd"],
        # With munge this is no password but the socket to use.
        "AccountingStoragePass": f"{state}/munge/munge.sock",
    }


def LightNode(name, ports, options):
    gres = f" Gres=gpu:{options.gpus}" if options.gpus else ""
    return (f"NodeName={name} NodeHostname={HostName()} NodeAddr=127.0.0.1 Port={ports[name]} "
            f"CPUs={options.cpus} RealMemory={options.memory_mb}{gres} State=UNKNOWN")


def SlurmConf(cluster, places, node_lines, options):
    """`places`: settings that tell where things are. `node_lines`: {node: its line}."""
    settings = {
        "ClusterName": cluster,
        **places,
        "AuthType": "auth/munge",
        "CredType": "cred/munge",
        "ProctrackType": "proctrack/cgroup",
        "TaskPlugin": "task/cgroup",
        "JobAcctGatherType": "jobacct_gather/cgroup",
        "JobAcctGatherFrequency": "task=1",
        "SelectType": "select/cons_tres",
        "SelectTypeParameters": "CR_CPU_Memory",
        "DefMemPerCPU": 64,
        "MpiDefault": "none",
        "AccountingStorageType": "accounting_storage/slurmdbd",
        "AccountingStorageTRES": "gres/gpu",
        "AccountingStorageEnforce": "associations,limits,qos",
        "AccountingStoreFlags": "job_comment",
        "GresTypes": "gpu",
        "PriorityType": "priority/multifactor",
        "PriorityWeightQOS": 1000,
        "PreemptType": "preempt/qos",
        "PreemptMode": "REQUEUE",
        "PreemptExemptTime": 0,
        "JobRequeue": 1,
        "MaxArraySize": 1001,
        "MaxJobCount": 20000,
        "MinJobAge": 60,
        "SchedulerParameters": "sched_min_interval=0,sched_interval=2,batch_sched_delay=0,"
                               "bf_interval=2,bf_continue,preempt_reorder_count=2",
        # A lab fails fast: a node is down after ten seconds of silence, killed jobs are gone after two.
        "SlurmdTimeout": 10,
        "SlurmctldTimeout": 10,
        "BatchStartTimeout": 10,
        "MessageTimeout": 10,
        "PrologEpilogTimeout": 30,
        "KillWait": 2,
        "UnkillableStepTimeout": 15,
        "CompleteWait": 0,
        "InactiveLimit": 0,
        "ReturnToService": 2,
        # Nodes claim more CPUs and memory than the host has.
        "SlurmdParameters": "config_overrides",
        "SlurmctldDebug": "info",
        "SlurmdDebug": "info",
        "Prolog": options.prolog,
        "Epilog": options.epilog,
        "TaskProlog": options.task_prolog,
        "PrologSlurmctld": options.prolog_slurmctld,
        "EpilogSlurmctld": options.epilog_slurmctld,
        "PrologFlags": options.prolog_flags,
    }
    settings.update(options.overrides)
    lines = [f"{key}={value}" for key, value in settings.items() if value not in ("", None)]
    lines += node_lines.values()
    everyone = ",".join(node_lines)
    lines.append(f"PartitionName=main Nodes={everyone} Default=YES DefaultTime=10 MaxTime=UNLIMITED State=UP")
    lines.append(f"PartitionName=short Nodes={everyone} DefaultTime=1 MaxTime=5 State=UP")
    lines.append(f"PartitionName=closed Nodes={next(iter(node_lines))} MaxTime=60 State=DOWN")
    return "\n".join(lines) + "\n"


def Env(state, cluster, nodes):
    variables = {
        "SLURM_CONF": f"{state}/etc/slurm.conf",
        "SLURM_LAB_STATE": state,
        "SLURM_LAB_CLUSTER": cluster,
        "SLURM_LAB_NODES": " ".join(nodes),
        "SLURM_LAB_USER": LAB_USER,
        "SLURM_LAB_HOME": f"{state}/home",
        "SLURM_LAB_CTLD_STATE": f"{state}/ctld",
    }
    return "".join(f"export {key}={shlex.quote(str(value))}\n" for key, value in variables.items())
