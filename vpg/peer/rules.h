/* rules.h - which commands others may run here: the file `rules` of the folder.  Pure.
 *
 *	deny PATTERN	programs that are refused
 *	allow PATTERN	if there is one such line: nothing else is run
 *
 * A pattern is the shell's (fnmatch), for the program's path as it was asked for; a pattern without
 * a slash is for the path's last part. deny takes precedence over allow. # begins a comment.
 */
#ifndef VPG_RULES_H
#define VPG_RULES_H

enum rules_answer { RULES_ALLOW, RULES_DENY, RULES_DAMAGED };

enum rules_answer rules_ask(const char *text, const char *program);

#endif
