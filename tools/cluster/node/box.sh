#!/bin/sh
# box.sh FOLDER COMMAND...: the box of a one-node cluster, as root, until its standard input ends.
#
# The box is one process with its own mount, network and process namespaces; COMMAND and all that it starts, containers too,
# live in it. Killing that one process ends them all and takes their mounts, network and firewall rules along. The host gets a
# veth pair and two routes, a cgroup for each controller, and the kernel settings that a kubelet changes; at the end they are
# as before, and FOLDER, which held the node's files, is gone. Nothing in the box has a way out: it has no default route.
#
#   host 10.97.0.1 <-> node 10.97.0.2, pods 10.244.0.0/24, Services 10.96.0.0/16
#
# Its standard output is COMMAND's, after what it has to say to a person itself, and ends with it.
set -eu
link=heartbeat-node
host=10.97.0.1 node=10.97.0.2 pods=10.244.0.0/24 services=10.96.0.0/16
cgroup=heartbeat-node

# The box's first process: it stays, and reaps what is left behind.
if [ "${1:-}" = inside ]; then
  folder=$2
  shift 2
  mount --make-rshared /
  for place in /run /var/log /var/lib/cni /var/lib/kubelet; do mount -t tmpfs tmpfs $place; done
  mkdir -p /run/netns /var/log/pods
  until ip link show eth0 > /dev/null 2>&1; do sleep 0.05; done
  ip link set lo up
  ip addr add $node/30 dev eth0
  ip link set eth0 up
  # The node's own calls to a Service need a route before they are rewritten.
  ip route add $services via $host
  echo 1 > /proc/sys/net/ipv4/ip_forward
  "$@" &
  wait $!
  exit
fi

folder=$1
shift

# One box at a time: names and addresses are fixed. The lock, on a folder that every machine has, goes with this process, however
# it ends.
exec 9< /var/lib
flock -n 9 || {
  echo 'another node runs, or is being stopped: waiting for it'
  flock -w 600 9 || { echo 'another node has run for ten minutes: stop it and start again' >&2; exit 1; }
}

own=
keep() { [ -d "$1" ] || { mkdir -p "$1"; own="$1 $own"; }; }
for place in /var/lib/cni /var/lib/kubelet; do keep $place; done

# Version 2 has one tree, version 1 one for each controller, and there a new cpuset is empty: nothing could run in it.
if [ -e /sys/fs/cgroup/cgroup.procs ]; then trees=/sys/fs/cgroup; else trees=$(ls -d /sys/fs/cgroup/*); fi
for tree in $trees; do
  [ -e "$tree/cgroup.procs" ] || continue
  mkdir -p "$tree/$cgroup"
  [ "$tree" != /sys/fs/cgroup ] || continue
  for setting in cpuset.cpus cpuset.mems; do
    [ ! -e "$tree/$setting" ] || cat "$tree/$setting" > "$tree/$cgroup/$setting"
  done
done

saved=
for setting in vm/overcommit_memory vm/panic_on_oom kernel/panic kernel/panic_on_oops kernel/keys/root_maxkeys \
  kernel/keys/root_maxbytes; do
  [ ! -r /proc/sys/$setting ] || saved="$saved $setting=$(cat /proc/sys/$setting)"
done

unshare --mount --net --pid --fork --kill-child --mount-proc sh "$0" inside "$folder" "$@" 9>&- < /dev/null &
holder=$!

end() {
  # unshare reaps the box, which goes when the last of its processes has gone.
  box=$(cat /proc/$holder/task/$holder/children 2> /dev/null || true)
  kill -KILL ${box:-$holder} 2> /dev/null || true
  wait $holder 2> /dev/null || true
  ip link del $link 2> /dev/null || true
  # A process of the box may need a moment to be gone from its cgroup.
  for try in 1 2 3 4 5 6 7 8 9 10 11 12 13 14 15 16 17 18 19 20; do
    left=
    for tree in $trees; do
      place=$tree/$cgroup
      [ -d "$place" ] || continue
      find "$place" -depth -type d -exec rmdir {} \; 2> /dev/null || true
      [ ! -d "$place" ] || left="$left $place"
    done
    [ -n "$left" ] || break
    sleep 0.25
  done
  for setting in $saved; do echo "${setting#*=}" > "/proc/sys/${setting%%=*}" 2> /dev/null || true; done
  for place in $own; do rmdir "$place" 2> /dev/null || true; done
  rm -rf --one-file-system "$folder"
  [ -z "$left" ] || { echo "these cgroups cannot be removed:$left" >&2; exit 1; }
}
trap end EXIT

until [ "$(readlink /proc/$holder/ns/net)" != "$(readlink /proc/$$/ns/net)" ]; do
  kill -0 $holder
  sleep 0.02
done
ip link add $link type veth peer name eth0 netns $holder
ip addr add $host/30 dev $link
ip link set $link up
ip route add $pods via $node
ip route add $services via $node

exec > /dev/null
cat > /dev/null
