/* image.h - the program that makes root images: vmp-image, a script beside this program. */
#ifndef VMM_CLI_IMAGE_IMAGE_H
#define VMM_CLI_IMAGE_IMAGE_H

#include <stddef.h>

/* Its messages begin so. */
#define IMAGE_SAYS "vmp image: "

/* Stores its path.  Returns 0, or -1 if it does not fit. */
int image_program(char *path, size_t bytes);

#endif
