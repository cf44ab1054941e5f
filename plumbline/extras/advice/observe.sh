#!/bin/sh
# observe.sh LIBRARY SPOOL on|task[:PERCENT] [-- PROGRAM ARG...]
#
# Print the variables by which every process of this job leaves a witness in SPOOL/UID/JOB, as lines that both a shell
# and Slurm's TaskProlog read. With a program: become it, with these variables. Where anything is unsafe or missing it
# prints nothing, ends with 0, and the job runs as without it. "on": this process has all CPUs of the job on this host;
# PERCENT: of the jobs, by a hash of their names.
library=$1 spool=$2 mode=${3%%:*} share=${3#*:}
[ "$#" -ge 3 ] && shift 3
[ "${1-}" = -- ] && shift
# the job's own libraries stay out of the programs that are started here
was=${LD_PRELOAD+set} before=${LD_PRELOAD-}
unset LD_PRELOAD

# HOST.node: the CPUs of the job here, how CPUs and memory of the host lie, and what the job is called
describe() {
    allowed=${PLUMB_ADVICE_CPUS-} cores=''
    while IFS=: read -r number controllers path; do
        case $number:$controllers: in
        0::) base=/sys/fs/cgroup file=cpuset.cpus.effective ;;
        *:cpuset:* | *:cpuset,* | *,cpuset:* | *,cpuset,*) base=/sys/fs/cgroup/cpuset file=cpuset.cpus ;;
        *) continue ;;
        esac
        case $path in
        */job_[0-9]*/step_*) path=${path%%/step_*} ;;
        *) [ "$job" = "$host.$PPID" ] || continue ;; # a service's, not the job's
        esac
        [ -z "$allowed" ] || break
        [ ! -r "$base$path/$file" ] || read -r allowed <"$base$path/$file"
    done </proc/self/cgroup
    while [ -z "$allowed" ] && [ "$mode" = on ] && read -r key value; do
        [ "$key" = Cpus_allowed_list: ] && allowed=$value
    done </proc/self/status
    if [ -r "${PE_HOSTFILE-}" ]; then
        while read -r _ slots _; do cores=$cores$slots,; done <"$PE_HOSTFILE"
    elif [ "$job" != "$host.$PPID" ]; then
        cores=${NSLOTS-${LSB_MCPU_HOSTS-${NCPUS-}}}
    fi
    launcher=${SLURM_JOB_ID+srun}
    [ -z "${FLUX_JOB_ID-}" ] || launcher='flux run'
    printf '%s\n' "allowed=$allowed" "counts=${SLURM_JOB_CPUS_PER_NODE-}" "cores=$cores" "launcher=$launcher" \
        "array=${SLURM_ARRAY_JOB_ID:+${SLURM_ARRAY_JOB_ID}_${SLURM_ARRAY_TASK_ID-}}" \
        "name=${SLURM_JOB_NAME-${PBS_JOBNAME-${LSB_JOBNAME-${JOB_NAME-}}}}" \
        "account=${SLURM_JOB_ACCOUNT-${PBS_ACCOUNT-${LSB_PROJECT_NAME-${SGE_ACCOUNT-}}}}" \
        "partition=${SLURM_JOB_PARTITION-${PBS_QUEUE-${LSB_QUEUE-${QUEUE-}}}}"
    # it also fails where there is no such GPU
    (cd /sys/devices/system && grep -s . cpu/cpu[0-9]*/topology/thread_siblings_list node/node[0-9]*/cpulist \
        /sys/bus/pci/drivers/nvidia/*:*/local_cpulist /sys/class/infiniband/*/ports/*/state \
        /sys/class/infiniband/*/ports/*/link_layer) || :
}

# a job in a job of Flux belongs to the outer one; a job of an array has its number there behind a _
name_job() {
    job=${SLURM_JOB_ID-${FLUX_JOB_ID_PATH-${FLUX_JOB_ID-${PBS_JOBID-${LSB_JOBID-${JOB_ID-}}}}}}
    job=${job#/} job=${job%%/*}
    case $job in
    ƒ*) job=f${job#ƒ} ;;
    *"["*"]"*) job=${job%%"["*}_${job#*"["} job=${job%%"]"*} ;;
    "${PBS_JOBID-.}") job=${job%%.*} ;;
    "${LSB_JOBID-.}") [ "${LSB_JOBINDEX:-0}" = 0 ] || job=${job}_$LSB_JOBINDEX ;;
    "${JOB_ID-.}") [ "${SGE_TASK_ID:-undefined}" = undefined ] || job=${job}_$SGE_TASK_ID ;;
    esac
    [ -n "$job" ] || job=$host.$PPID
}

observe() {
    read -r host </proc/sys/kernel/hostname || return
    name_job
    user=${SLURM_JOB_UID-$(id -u)}
    case $user$job$spool$library in
    *[!A-Za-z0-9/._+@=,-]* | *..*) return ;;
    esac
    case $library:$spool:$job in
    /*:/*:[!.]*) ;;
    *) return ;;
    esac
    [ "${PLUMB_ADVICE-}" = off ] || [ ! -r "$library" ] && return
    case $share in
    [0-9] | [0-9][0-9])
        hash=$(printf %s "$job" | cksum)
        [ "$((1${hash%% *} % 100))" -lt "$share" ] || return
        ;;
    esac
    # where another user could move this one's folder away
    # shellcheck disable=SC3065,SC3067  # dash, bash, ksh and BusyBox have -k and -O
    [ -k "$spool" ] || [ -O "$spool" ] || [ ! -w "$spool" ] || return
    own=$spool/$user
    for folder in "$own" "$own/$job"; do
        [ -d "$folder" ] || mkdir -m 700 "$folder" 2>/dev/null
        # nobody else may have made it, or may write there
        # shellcheck disable=SC3067
        [ -d "$folder" ] && [ ! -L "$folder" ] && [ -O "$folder" ] && [ -w "$folder" ] || return
    done
    node=$own/$job/$host.node
    if [ ! -e "$node" ]; then
        chmod 700 "$own" "$own/$job" && describe >"$node.$$" 2>/dev/null && mv "$node.$$" "$node" || return
    fi 2>/dev/null
    variables="PLUMB_WITNESS_DIR=$own/$job PLUMB_WITNESS_MOST=10000"
    case :$before: in
    *:"$library":*) return ;; # handed on by another job
    esac
    variables="LD_PRELOAD=$library${before:+:$before} $variables"
    # what a container would have had without them: the library is not in it
    for engine in APPTAINERENV SINGULARITYENV; do
        eval "[ -n \"\${${engine}_LD_PRELOAD+set}\" ]" || variables="$variables ${engine}_LD_PRELOAD=$before"
    done
}

variables=''
case $before in
*[!A-Za-z0-9/._+@=,:-]*) ;;  # blanks: not for a line of variables
*) observe ;;
esac
if [ "$#" -gt 0 ]; then
    [ -z "$was" ] || export LD_PRELOAD="$before"
    # shellcheck disable=SC2086,SC2163  # NAME=VALUE words without blanks
    [ -z "$variables" ] || export $variables
    exec "$@"
fi
for pair in $variables; do
    printf 'export %s\n' "$pair"
done
