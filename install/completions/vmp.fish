# Completion of vmp for fish. What can stand at a place, vmp itself knows: `vmp complete`.
function __vmp_complete
	set -l words (commandline -opc)
	set -l current (commandline -ct)
	for line in ($words[1] complete -- $words[2..] "$current" 2>/dev/null)
		switch $line
			case ':files*'
				__fish_complete_path "$current"
			case ':folders*'
				__fish_complete_directories "$current"
			case '*'
				echo $line
		end
	end
end
complete -c vmp -f -a '(__vmp_complete)'
