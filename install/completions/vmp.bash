# Completion of vmp for bash. What can stand at a place, vmp itself knows: `vmp complete`.
_vmp()
{
	local candidate rest current=${COMP_WORDS[COMP_CWORD]}

	COMPREPLY=()
	[ "$current" != = ] || current=
	while IFS=$'\t' read -r candidate rest; do
		case $candidate in
		:files)
			compopt -o filenames
			mapfile -t -O "${#COMPREPLY[@]}" COMPREPLY < <(compgen -f -- "$current") ;;
		:folders)
			compopt -o filenames
			mapfile -t -O "${#COMPREPLY[@]}" COMPREPLY < <(compgen -d -- "$current") ;;
		?*) COMPREPLY+=("$candidate") ;;
		esac
	done < <("${COMP_WORDS[0]}" complete -- "${COMP_WORDS[@]:1:COMP_CWORD}" 2>/dev/null)
}
complete -F _vmp vmp
