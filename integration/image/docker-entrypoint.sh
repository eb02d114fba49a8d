#!/bin/bash
# Starts ZooKeeper as the official image does: zoo.cfg and myid are written from ZOO_…, once;
# then Java takes over this process, so that a signal to the container is one to the server.
# What the variables mean: README of the official image, "Environment variables".
set -eu

config=/conf/zoo.cfg
mkdir -p /conf /data
cd /conf

if [ ! -e "$config" ]; then
  {
    echo "dataDir=/data"
    echo "tickTime=${ZOO_TICK_TIME:-2000}"
    echo "initLimit=${ZOO_INIT_LIMIT:-5}"
    echo "syncLimit=${ZOO_SYNC_LIMIT:-2}"
    echo "maxClientCnxns=${ZOO_MAX_CLIENT_CNXNS:-60}"
    echo "standaloneEnabled=${ZOO_STANDALONE_ENABLED:-true}"
    echo "admin.enableServer=${ZOO_ADMINSERVER_ENABLED:-true}"
    if [ -n "${ZOO_4LW_COMMANDS_WHITELIST:-}" ]; then
      echo "4lw.commands.whitelist=$ZOO_4LW_COMMANDS_WHITELIST"
    fi
    # Not quoted: both hold several lines, one to a word.
    printf '%s\n' ${ZOO_SERVERS:-server.1=localhost:2888:3888;2181} ${ZOO_CFG_EXTRA:-}
  } > "$config"
fi
[ -e /data/myid ] || echo "${ZOO_MY_ID:-1}" > /data/myid

jars=/usr/share/java
# The last two are not named in zookeeper.jar's manifest: the log, and Netty for TLS.
class_path="$jars/zookeeper.jar:$jars/slf4j-simple.jar:$jars/netty-codec.jar"
# Not quoted: several options.
exec java -cp "$class_path" ${SERVER_JVMFLAGS:-} \
  org.apache.zookeeper.server.quorum.QuorumPeerMain "$config"
