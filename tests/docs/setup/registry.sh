# A registry on a free port of this machine. Pages call it registry.example; the skopeo configuration maps that name and
# disables TLS.
if [ "$FIRST" = 1 ]; then
  port=$(python3 -c 'import socket; s = socket.socket(); s.bind(("127.0.0.1", 0)); print(s.getsockname()[1])')
  printf 'version: 0.1\nlog: {level: error}\nstorage: {filesystem: {rootdirectory: %s}}\nhttp: {addr: 127.0.0.1:%s}\n' \
    "$PWD/registry" "$port" >registry.yml
  docker-registry serve registry.yml >registry.log 2>&1 &
  echo "127.0.0.1:$port" >registry.address
  for _ in $(seq 1200); do (exec 3<>"/dev/tcp/127.0.0.1/$port") 2>/dev/null && break; sleep 0.05; done
  echo '{"default": [{"type": "insecureAcceptAnything"}]}' >skopeo-policy.json
fi
skopeo() {
  local given=() each address=$(cat registry.address)
  for each in "$@"; do
    each=${each/registry.inside.example/$address}
    given+=("${each/registry.example/$address}")
  done
  command skopeo --policy skopeo-policy.json "${given[@]:0:1}" --src-tls-verify=false --dest-tls-verify=false "${given[@]:1}"
}
