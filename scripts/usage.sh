# usage.sh - for scripts, which source it before they leave their folder: usage prints the script's
# head comment, and ends it with status 2.
case $0 in
/*) usage_of=$0 ;;
*) usage_of=$PWD/$0 ;;
esac
usage()
{
	sed -n '2,${ /^#/!q; s/^# \{0,1\}//p; }' "$usage_of"
	exit 2
}
