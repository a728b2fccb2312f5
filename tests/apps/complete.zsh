# SPDX-License-Identifier: Apache-2.0
# Prints what zsh offers for each command line. The arguments are a completion script and command lines.
zmodload zsh/zpty
script=$1
shift
zpty shell zsh -f -i
zpty -w shell "PS1=; autoload -U compinit; compinit -u -D; source ${(q)script}
compadd() { local -a found; builtin compadd -O found \"\$@\"; print -rl -- \$found >>found; builtin compadd \"\$@\" }
finish() { print -r -- complete''d; zle kill-buffer }; zle -N finish; bindkey '^F' finish; print -r -- rea''dy"
zpty -r shell output '*ready*'
for line; do
  : >found
  zpty -w -n shell "$line"$'\t\x06' # Tab and Ctrl-F
  zpty -r shell output '*completed*'
  print -r -- "$line: ${(j: :)${(fu)"$(<found)"}}"
done
zpty -d shell
