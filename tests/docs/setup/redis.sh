# A lease table on a free port of this machine: $LEASE_URL.
if [ "$FIRST" = 1 ]; then
  port=$(python3 -c 'import socket; s = socket.socket(); s.bind(("127.0.0.1", 0)); print(s.getsockname()[1])')
  redis-server --port "$port" --bind 127.0.0.1 --save '' --appendonly no >redis.log 2>&1 &
  echo "redis://127.0.0.1:$port" >redis.url
  for _ in $(seq 1200); do (exec 3<>"/dev/tcp/127.0.0.1/$port") 2>/dev/null && break; sleep 0.05; done
fi
export LEASE_URL=$(cat redis.url)
