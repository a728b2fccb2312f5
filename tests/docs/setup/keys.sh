# Keys, and policies that trust them: CI's key for releases, the authority's key for hosts.
if [ "$FIRST" = 1 ]; then
  kiln key generate -o made-ci.key >made-ci.pub
  kiln key generate -o made-authority.key >made-authority.pub
  public() { grep -o "kiln-public-1:[0-9a-f]*" "$1" | head -n 1; }
  printf '[[key]]\npublic = "%s"\nnamespaces = ["acme/*"]\n' "$(public made-ci.pub)" >trust.toml
fi
