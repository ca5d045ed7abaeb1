# invd
	.text
class_invd:
	invd
	ret
