#!/bin/sh
# observe.sh LIBRARY SPOOL on|task|task:PERCENT [-- PROGRAM ARG...]
#
# Print the variables by which every process of this job leaves a witness in SPOOL/UID/JOB, as lines that both a shell
# and Slurm's TaskProlog read. With a program: become it, with these variables. Where anything is unsafe or missing it
# prints nothing, ends with 0, and the job runs as without it. "on": this process has all CPUs of the job on this host;
# PERCENT: of the jobs, by their numbers.
library=$1 spool=$2 mode=$3
[ "$#" -ge 3 ] && shift 3
[ "${1-}" = -- ] && shift

# HOST.node: the CPUs of the job here, how CPUs and memory of the host lie, and what the job is called
describe() {
    allowed='' job=$1
    while IFS=: read -r number controllers path; do
        case $number:$controllers: in
        0::) base=/sys/fs/cgroup file=cpuset.cpus.effective ;;
        *:cpuset:* | *:cpuset,* | *,cpuset:* | *,cpuset,*) base=/sys/fs/cgroup/cpuset file=cpuset.cpus ;;
        *) continue ;;
        esac
        case $path in
        */job_"$job"/*) path=${path%%"/job_$job/"*}/job_$job ;;
        *) [ -z "${SLURM_JOB_ID-}" ] || continue ;; # a service's, not the job's
        esac
        [ -r "$base$path/$file" ] && read -r allowed <"$base$path/$file" && [ -n "$allowed" ] && break
    done </proc/self/cgroup
    while [ -z "$allowed" ] && [ "$mode" = on ] && read -r key value; do
        [ "$key" = Cpus_allowed_list: ] && allowed=$value
    done </proc/self/status
    for pair in "allowed=$allowed" "counts=${SLURM_JOB_CPUS_PER_NODE-}" "name=${SLURM_JOB_NAME-${PBS_JOBNAME-${JOB_NAME-}}}" \
        "account=${SLURM_JOB_ACCOUNT-${PBS_ACCOUNT-}}" "partition=${SLURM_JOB_PARTITION-${PBS_QUEUE-${QUEUE-}}}"; do
        printf '%s\n' "$pair"
    done
    # it also fails where there is no such GPU
    (cd /sys/devices/system && grep -s . cpu/cpu[0-9]*/topology/thread_siblings_list node/node[0-9]*/cpulist \
        /sys/bus/pci/drivers/nvidia/*:*/local_cpulist) || :
}

observe() {
    job=${SLURM_JOB_ID-${FLUX_JOB_ID-${PBS_JOBID-${LSB_JOBID-${JOB_ID-}}}}}
    case $mode in
    *:*) [ "$((${job%%[!0-9]*} % 100))" -lt "${mode#*:}" ] || return ;;
    esac 2>/dev/null
    read -r host </proc/sys/kernel/hostname || return
    [ -n "$job" ] || job=$host.$PPID
    case $job$spool$library in
    *[!A-Za-z0-9/._+@=,-]* | *..*) return ;;
    esac
    case $library:$spool:$job in
    /*:/*:[!.]*) ;;
    *) return ;;
    esac
    [ "${PLUMB_ADVICE-}" = off ] || [ ! -r "$library" ] && return
    own=$spool/${SLURM_JOB_UID-$(id -u)}
    umask 077
    for folder in "$own" "$own/$job"; do
        [ -d "$folder" ] || mkdir "$folder" 2>/dev/null
        # nobody else may have made it, or may write there
        # shellcheck disable=SC3067  # dash, bash, ksh and BusyBox have -O
        [ -d "$folder" ] && [ ! -L "$folder" ] && [ -O "$folder" ] && [ -w "$folder" ] || return
    done
    node=$own/$job/$host.node
    if [ ! -e "$node" ]; then
        chmod 700 "$own" "$own/$job" && describe "$job" >"$node.$$" 2>/dev/null && mv "$node.$$" "$node" || return
    fi 2>/dev/null
    case :${LD_PRELOAD-}: in
    *:"$library":*) return ;;
    esac
    variables="LD_PRELOAD=$library${LD_PRELOAD:+:$LD_PRELOAD} PLUMB_WITNESS_DIR=$own/$job PLUMB_WITNESS_MOST=10000"
    # what a container would have had without them: the library is not in it
    for engine in APPTAINERENV SINGULARITYENV; do
        eval "[ -n \"\${${engine}_LD_PRELOAD+set}\" ]" || variables="$variables ${engine}_LD_PRELOAD=${LD_PRELOAD-}"
    done
}

variables=''
case ${LD_PRELOAD-} in
*[!A-Za-z0-9/._+@=,:-]*) ;;  # blanks: not for a line of variables
*) observe ;;
esac
if [ "$#" -gt 0 ]; then
    # shellcheck disable=SC2086,SC2163  # NAME=VALUE words without blanks
    [ -z "$variables" ] || export $variables
    exec "$@"
fi
for pair in $variables; do
    printf 'export %s\n' "$pair"
done
