# median.sh - for programs that measure in turns.

# median FILE: prints the median of its numbers, one in each line; "-" if there are none
median()
{
	sort -g "$1" 2>/dev/null |
		awk '{ v[NR] = $1 } END { print NR ? v[int((NR + 1) / 2)] : "-" }'
}
