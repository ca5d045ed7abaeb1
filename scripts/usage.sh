# usage.sh - scripts source it before they change their folder.  It defines usage(), which prints
# the script's head comment and ends the script with status 2.
case $0 in
/*) usage_of=$0 ;;
*) usage_of=$PWD/$0 ;;
esac
usage()
{
	sed -n '2,${ /^#/!q; s/^# \{0,1\}//p; }' "$usage_of"
	exit 2
}
