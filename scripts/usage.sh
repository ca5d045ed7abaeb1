# usage.sh - for scripts, which source it before they leave their folder: usage prints the script's
# head comment, and ends it with status 2.
usage_of=$(cd "$(dirname "$0")" && pwd)/${0##*/}
usage()
{
	sed -n '2,${ /^#/!q; s/^# \{0,1\}//p; }' "$usage_of"
	exit 2
}
