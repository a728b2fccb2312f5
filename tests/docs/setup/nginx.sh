# A remote store on a free port of this machine: $CACHE_URL, with examples/nginx/nginx-kiln.conf unchanged.
if [ "$FIRST" = 1 ]; then
  mkdir -p nginx/root/ac nginx/root/cas nginx/root/incoming
  port=$(python3 -c 'import socket; s = socket.socket(); s.bind(("127.0.0.1", 0)); print(s.getsockname()[1])')
  {
    echo "user $(id -un); pid $PWD/nginx/pid; error_log $PWD/nginx/errors; daemon off; worker_processes 1;"
    echo 'events {}'
    echo "http { access_log off; server { listen 127.0.0.1:$port; root $PWD/nginx/root;"
    for kind in fastcgi uwsgi scgi proxy; do echo "${kind}_temp_path $PWD/nginx/$kind;"; done
    echo "client_body_temp_path $PWD/nginx/root/incoming; include $ROOT/examples/nginx/nginx-kiln.conf; } }"
  } >nginx/conf
  nginx -c "$PWD/nginx/conf" >nginx/log 2>&1 &
  echo "http://127.0.0.1:$port" >nginx/url
  for _ in $(seq 1200); do (exec 3<>"/dev/tcp/127.0.0.1/$port") 2>/dev/null && break; sleep 0.05; done
fi
export CACHE_URL=$(cat nginx/url)
