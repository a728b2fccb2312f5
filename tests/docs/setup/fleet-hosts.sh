# Each prompt is a host. The hosts share one directory, with a file in it instead of /etc/kiln/config.toml.
case $PROMPT in
  host) export KILN_CONFIG=$PWD/host.toml ;;
  *) export KILN_CONFIG=$PWD/config.toml ;;
esac
