# Each prompt is a host: they see one folder here, and have a file in it where /etc/kiln/config.toml would be.
case $PROMPT in
  host) export KILN_CONFIG=$PWD/host.toml ;;
  *) export KILN_CONFIG=$PWD/config.toml ;;
esac
