# `make install` and `make uninstall`.  PREFIX is where vmp will be, DESTDIR a folder to be
# put before it (for packages).
#
#   PREFIX/bin/vmp            a link to the program; PREFIX/bin/vmp-rsh one to `vmp rsh` as a
#                             program of its own
#   PREFIX/lib/vmp/           the programs; each finds the others in its own folder (base/beside.h)
#   PREFIX/lib/vmp/guest/     the guest kernel and image, and the libgomp that knows hosts if it was
#                             built, with their checksums
#   PREFIX/lib/vmp/web/       xterm.js and its licence, for the page of `vmp web`, if `make web` has
#                             fetched it
#   PREFIX/share/man/         the manual pages
#   PREFIX/share/...          completions for bash, zsh and fish
#   PREFIX/share/vmp/         grafana-vmp.json: a dashboard for what `vmp metrics` serves
#   PREFIX/lib/systemd/user/  vmp@.service: a machine as a user's service; vmp-peer.service: the
#                             daemon of `vmp peer`
#
# GUEST=DIR takes vmlinux, initramfs.cpio and, if there, libgomp.so.1 and vmlinux-pae from DIR; then
# no kernel is built.  `make guest-pae` builds vmlinux-pae before.  WEB=DIR does so for xterm.js.
# The library libphnx is not among it: `make install-phoenix`.
PREFIX ?= /usr/local
DESTDIR ?=
GUEST ?= $(B)/guest
WEB ?= $(B)/web
INSTALL_WEB := $(if $(wildcard $(WEB)/xterm.js),\
	$(addprefix $(WEB)/,xterm.js xterm.css addon-fit.js \
	LICENSE-xterm LICENSE-addon-fit))
INSTALL_LIB := $(DESTDIR)$(PREFIX)/lib/vmp
INSTALL_MAN := $(DESTDIR)$(PREFIX)/share/man
INSTALL_SHARE := $(DESTDIR)$(PREFIX)/share/vmp
INSTALL_UNITS := $(DESTDIR)$(PREFIX)/lib/systemd/user
INSTALL_PROGRAMS := vmp vmp-node vmp-monitor vmproc vmp-iosrv vmp-net vmp-share vmp-host vmp-peer \
	vmp-sh vmp-rsh vmp-image vmp-tunnel
INSTALL_PAGES := $(wildcard man/*.[1-8])
# What ZSH_FUNCTIONS is called differs: Debian's packages put theirs into vendor-completions.
ZSH_FUNCTIONS ?= site-functions
INSTALL_BASH := $(DESTDIR)$(PREFIX)/share/bash-completion/completions/vmp
INSTALL_ZSH := $(DESTDIR)$(PREFIX)/share/zsh/$(ZSH_FUNCTIONS)/_vmp
INSTALL_FISH := $(DESTDIR)$(PREFIX)/share/fish/vendor_completions.d/vmp.fish
page_path = $(INSTALL_MAN)/man$(subst .,,$(suffix $(1)))/$(notdir $(1))

.PHONY: install install-programs install-guest uninstall
install: install-programs install-guest

install-programs: $(addprefix $(B)/,$(INSTALL_PROGRAMS))
	$(Q)install -d $(INSTALL_LIB) $(DESTDIR)$(PREFIX)/bin $(INSTALL_UNITS)
	$(Q)install -m 755 $(addprefix $(B)/,$(INSTALL_PROGRAMS)) $(INSTALL_LIB)/
	$(Q)ln -sfn ../lib/vmp/vmp $(DESTDIR)$(PREFIX)/bin/vmp
	$(Q)ln -sfn ../lib/vmp/vmp-rsh $(DESTDIR)$(PREFIX)/bin/vmp-rsh
	$(Q)$(foreach page,$(INSTALL_PAGES),\
		install -D -m 644 $(page) $(call page_path,$(page)) &&) true
	$(Q)$(if $(INSTALL_WEB),install -d $(INSTALL_LIB)/web && \
		install -m 644 $(INSTALL_WEB) $(INSTALL_LIB)/web/)
	$(Q)install -D -m 644 install/grafana-vmp.json $(INSTALL_SHARE)/grafana-vmp.json
	$(Q)install -D -m 644 install/completions/vmp.bash $(INSTALL_BASH)
	$(Q)install -D -m 644 install/completions/_vmp $(INSTALL_ZSH)
	$(Q)install -D -m 644 install/completions/vmp.fish $(INSTALL_FISH)
	$(Q)sed 's|@BIN@|$(PREFIX)/bin|' install/vmp@.service >$(INSTALL_UNITS)/vmp@.service
	$(Q)sed 's|@BIN@|$(PREFIX)/bin|' install/vmp-peer.service >$(INSTALL_UNITS)/vmp-peer.service
	$(Q)chmod 644 $(INSTALL_UNITS)/vmp@.service $(INSTALL_UNITS)/vmp-peer.service

# The checksums are those of the files as they arrive: a copy that failed is noticed when a machine
# starts.
install-guest: $(if $(filter $(B)/guest,$(GUEST)),guest)
	$(Q)install -d $(INSTALL_LIB)/guest
	$(Q)install -m 644 $(GUEST)/vmlinux $(GUEST)/initramfs.cpio $(INSTALL_LIB)/guest/
	$(Q)for file in libgomp.so.1 vmlinux-pae; do [ ! -e $(GUEST)/$$file ] || \
		install -m 644 $(GUEST)/$$file $(INSTALL_LIB)/guest/ || exit; done
	$(Q)cd $(INSTALL_LIB)/guest && rm -f SHA256SUMS && sha256sum * >SHA256SUMS && \
		chmod 644 SHA256SUMS

# Removes what install puts there, and then the folders that are vmp's own.
uninstall:
	$(Q)rm -f $(addprefix $(INSTALL_LIB)/,$(INSTALL_PROGRAMS)) \
		$(addprefix $(INSTALL_LIB)/guest/,vmlinux vmlinux-pae initramfs.cpio \
			libgomp.so.1 SHA256SUMS)
	$(Q)rm -f $(addprefix $(INSTALL_LIB)/web/,xterm.js xterm.css \
		addon-fit.js LICENSE-xterm LICENSE-addon-fit)
	$(Q)rm -f $(DESTDIR)$(PREFIX)/bin/vmp $(DESTDIR)$(PREFIX)/bin/vmp-rsh \
		$(INSTALL_UNITS)/vmp@.service $(INSTALL_UNITS)/vmp-peer.service
	$(Q)rm -f $(INSTALL_SHARE)/grafana-vmp.json
	$(Q)rm -f $(INSTALL_BASH) $(INSTALL_ZSH) $(INSTALL_FISH)
	$(Q)rm -f $(foreach page,$(INSTALL_PAGES),$(call page_path,$(page)))
	$(Q)for d in $(INSTALL_LIB)/guest $(INSTALL_LIB)/web $(INSTALL_LIB) $(INSTALL_SHARE); do \
		[ ! -d $$d ] || rmdir $$d; done
