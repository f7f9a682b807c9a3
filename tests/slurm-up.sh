#!/bin/bash
# SPDX-License-Identifier: GPL-2.0-only
#
# slurm-up.sh FOLDER COMMAND...: run COMMAND beside a Slurm of one node, this machine, whose daemons, keys, sockets, ports and files are its own
# and lie in FOLDER, and end it. As root. Exit status: COMMAND's, or 3 if it does not come up.

set -uo pipefail
dir=$1
shift
mkdir -p "$dir/state" "$dir/spool"
cd "$dir" || exit 3
host=$(hostname -s)
port=$((20000 + $$ % 20000))
export SLURM_CONF=$dir/slurm.conf

cat >slurm.conf <<EOF
ClusterName=faultbed
SlurmctldHost=$host(127.0.0.1)
SlurmUser=root
SlurmdUser=root
SlurmctldPort=$port
SlurmdPort=$((port + 1))
AuthType=auth/munge
AuthInfo=socket=$dir/munge.socket
CryptoType=crypto/munge
StateSaveLocation=$dir/state
SlurmdSpoolDir=$dir/spool
SlurmctldPidFile=$dir/slurmctld.pid
SlurmdPidFile=$dir/slurmd.pid
SlurmctldLogFile=$dir/slurmctld.log
SlurmdLogFile=$dir/slurmd.log
ProctrackType=proctrack/pgid
TaskPlugin=task/none
JobAcctGatherType=jobacct_gather/none
AccountingStorageType=accounting_storage/none
MpiDefault=none
SelectType=select/cons_tres
SelectTypeParameters=CR_CPU_Memory
SchedulerParameters=sched_interval=1,bf_interval=1
MinJobAge=300
ReturnToService=2
KillWait=5
NodeName=$host NodeAddr=127.0.0.1 CPUs=$(nproc) RealMemory=$(awk '/^MemTotal/ { print int($2 / 1024 / 2) }' /proc/meminfo) State=UNKNOWN
PartitionName=all Nodes=$host Default=YES MaxTime=INFINITE State=UP
EOF
dd if=/dev/urandom of=munge.key bs=128 count=1 2>/dev/null
chmod 400 munge.key
daemons=()
start()
{
	"$@" >>daemons.log 2>&1 &
	daemons+=($!)
}
finish()
{
	scontrol shutdown >/dev/null 2>&1
	for pid in "${daemons[@]}"; do
		kill "$pid" 2>/dev/null
	done
	wait
}
trap finish EXIT
start munged --foreground --force --key-file="$dir/munge.key" --socket="$dir/munge.socket" --pid-file="$dir/munged.pid" \
	--log-file="$dir/munged.log" --seed-file="$dir/munged.seed"
for ((i = 0; i < 100; i++)); do [ ! -S munge.socket ] || break; sleep 0.1; done
start slurmctld -D -f "$SLURM_CONF"
start slurmd -D -f "$SLURM_CONF" -N "$host"
for ((i = 0; ; i++)); do
	[ "$(sinfo -h -o %t 2>/dev/null)" != idle ] || break
	if [ $i = 150 ]; then
		echo "error: slurm-up.sh: no idle node after 30 s: $(sinfo -h -o '%t %E' 2>&1)" >&2
		tail -n 5 daemons.log munged.log slurmctld.log slurmd.log >&2
		exit 3
	fi
	sleep 0.2
done
"$@"
