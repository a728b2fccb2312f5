# Hosts of a page that share a directory. ci and node have a configuration file that the page writes, in the place of
# /etc/kiln/config.toml; the others have none.
mkdir -p shared
case $PROMPT in
  ci) export KILN_CONFIG=$PWD/config.toml ;;
  node) export KILN_CONFIG=$PWD/node.toml ;;
esac
