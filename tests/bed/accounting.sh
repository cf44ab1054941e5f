#!/bin/bash
# Makes accounts by slurmdbd, on the controller of the bed.
set -e
apt-get update -qq
DEBIAN_FRONTEND=noninteractive apt-get install -y -qq --no-install-recommends slurmdbd mariadb-server >/dev/null 2>&1
mysql -e 'grant all on *.* to slurm@localhost identified via unix_socket'
printf '%s\n' AuthType=auth/munge DbdHost=ctl SlurmUser=slurm LogFile=/var/log/slurm/slurmdbd.log \
    PidFile=/run/slurmdbd.pid StorageType=accounting_storage/mysql StorageUser=slurm >/etc/slurm/slurmdbd.conf
chown slurm: /etc/slurm/slurmdbd.conf
chmod 600 /etc/slurm/slurmdbd.conf
systemctl restart slurmdbd
for _ in $(seq 60); do sacctmgr -n show cluster >/dev/null 2>&1 && break; sleep 0.5; done
sed -i 's,^AccountingStorageType=.*,AccountingStorageType=accounting_storage/slurmdbd\nAccountingStorageHost=ctl,' \
    /etc/slurm/slurm.conf
echo AccountingStorageEnforce=associations,limits,qos >>/etc/slurm/slurm.conf
has() { [ -n "$(sacctmgr -n -p show "$@")" ]; }
has cluster bed || sacctmgr -i add cluster bed
has account lab || sacctmgr -i add account lab,other cluster=bed
has qos short || sacctmgr -i add qos short set MaxWall=1 flags=DenyOnLimit
has assoc account=lab user=bench || sacctmgr -i add user bench account=lab qos=normal,short
has assoc account=other user=bench || sacctmgr -i add user bench account=other qos=normal
systemctl restart slurmctld
for _ in $(seq 60); do [ "$(sinfo -h -o %T)" = idle ] && break; sleep 0.5; done
