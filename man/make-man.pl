#!/usr/bin/perl
# SPDX-License-Identifier: GPL-2.0-only
#
# make-man.pl FAULTBED VMM OUT: the man pages, from what the programs say of themselves (--help), from the tables of docs/scenario.md, and from
# man/*.in, which has what neither says. So an option is described in one place.
#
# In man/NAME.N.in, which is troff: a line @OPTIONS PROGRAM [COMMAND]@ becomes the list of options, @COMMANDS@ the list of commands, @KEYS@ all
# keys of scenarios. Each command has a page; man/faultbed-COMMAND.1.in, if there is one, is what stands behind its options.

use strict;
use warnings;
use utf8;
use FindBin;
use open qw(:std :encoding(UTF-8));

my ($faultbed, $vmm, $out) = @ARGV;
die "usage: make-man.pl FAULTBED VMM OUT\n" unless defined $out;
my $tree = "$FindBin::Bin/..";
mkdir $out;

sub said
{
	my $text = `@_ 2>&1`;
	die "error: @_: exit status " . ($? >> 8) . "\n" if $? || !length $text;
	utf8::decode($text) unless utf8::is_utf8($text);
	return $text;
}

# Text as troff has it: no request, no escape, hyphens that can be copied.
sub roff
{
	my ($text) = @_;
	$text =~ s/\\/\\e/g;
	$text =~ s/-/\\-/g;
	$text =~ s/^(['.])/\\&$1/mg;
	return $text;
}

# Of Markdown: `code` is bold, links are their text.
sub from_markdown
{
	my ($text) = @_;
	$text =~ s/\[([^\]]*)\]\([^)]*\)/$1/g;
	$text =~ s/\*\*(.*?)\*\*/$1/g;
	$text = roff($text);
	$text =~ s/``(.*?)``|`([^`]*)`/'\\fB' . ($1 \/\/ $2) . '\\fR'/ge;
	return $text;
}

my ($version) = said("$faultbed --version") =~ /^faultbed (\S+)/;
# When the last of what is in them was changed, by git; without it, when this was.
my $date = `git -C '$tree' log -1 --format=%cs -- man docs/scenario.md host-tools vmm 2>/dev/null`;
chomp $date;
if (!length $date) {
	my @t = gmtime((stat "$FindBin::Bin/make-man.pl")[9]);

	$date = sprintf '%d-%02d-%02d', $t[5] + 1900, $t[4] + 1, $t[3];
}
my $usage = said("$faultbed --help");
my %about = $usage =~ /^  (\S+)\s+(\S.*)$/mg;
my @commands = $usage =~ /^  (\S+)\s+\S/mg;

sub options
{
	my ($help) = @_;
	my $text = '';

	while ($help =~ /^  (?:(-\w), )?(--[\w-]+)(=\S+)?\s+(\S.*)$/mg) {
		my ($short, $long, $value, $what) = ($1, $2, $3 // '', $4);
		my $head = ($short ? '\\fB' . roff($short) . '\\fR, ' : '') . '\\fB' . roff($long) . '\\fR';

		$value =~ s/^=//;
		$head .= '=\\fI' . roff($value) . '\\fR' if length $value;
		$text .= ".TP\n$head\n" . roff(ucfirst $what) . ".\n";
	}
	return $text;
}

sub commands
{
	return join '', map { ".TP\n.BR faultbed\\-" . roff($_) . " (1)\n" . roff(ucfirst $about{$_}) . ".\n" } @commands;
}

# "| `key` | `default` | meaning |" below "## [section]".
sub keys_of_scenarios
{
	my ($text, $section) = ('', undef);

	open my $f, '<', "$tree/docs/scenario.md" or die "error: docs/scenario.md: $!\n";
	while (my $line = <$f>) {
		if ($line =~ /^## (\[\w+\])/) {
			$section = $1;
			$text .= ".SS $section\n";
		} elsif ($line =~ /^## /) {
			undef $section;
		} elsif ($section && $line =~ /^\| (`[^|]*`) \|((?:[^|\\]|\\.)*)\|(.*)\|\s*$/) {
			my ($key, $default, $what) = ($1, $2, $3);

			($default, $what) = map { s/^\s+|\s+$//gr =~ s/\\\|/|/gr } $default, $what;
			$text .= ".TP\n" . from_markdown($key) . (length $default ? ' (' . from_markdown($default) . ')' : '') . "\n" . from_markdown(ucfirst $what) . ".\n";
		}
	}
	return $text;
}

sub write_page
{
	my ($name, $section, $title, $body) = @_;
	my $upper = uc $name;

	$body =~ s/^\@OPTIONS (.*)\@$/options(said(($1 eq 'faultbed-vmm' ? $vmm : "$faultbed " . $1 =~ s,^faultbed ,,r) . ' --help'))/mge;
	$body =~ s/^\@COMMANDS\@$/commands()/mge;
	$body =~ s/^\@KEYS\@$/keys_of_scenarios()/mge;
	die "error: $name: a line that is not known: $&\n" if $body =~ /^\@.*/m;
	open my $f, '>', "$out/$name.$section" or die "error: $out/$name.$section: $!\n";
	print $f ".\\\" Made by man/make-man.pl.\n.TH $upper $section \"$date\" \"Faultbed $version\" \"$title\"\n$body";
	close $f or die "error: $out/$name.$section: $!\n";
}

sub template
{
	my ($name) = @_;
	open my $f, '<', "$FindBin::Bin/$name.in" or return undef;
	local $/;
	my $text = <$f>;
	$text =~ s/^\.\\".*\n//mg;
	return $text;
}

for my $command (@commands) {
	my $help = said("$faultbed $command --help");
	my ($arguments) = $help =~ /^\s*(?:usage: )?faultbed \S+(?: \[OPTION…\])? ?(.*?)(?: - .*|\s{3,}.*)?$/mi;
	my ($summary) = $help =~ /^Usage:\n.*\n\n((?:(?!Help Options).+\n)+)/m;
	my $options = options($help);
	my $body = ".SH NAME\nfaultbed\\-" . roff($command) . ' \\- ' . roff($about{$command}) . "\n.SH SYNOPSIS\n.B faultbed " . roff($command) .
		"\n" . ($options ? "[\\fIoption\\fR...]\n" : '') . (length $arguments ? roff($arguments) . "\n" : '');

	$body .= ".SH DESCRIPTION\n" . roff($summary) if defined $summary;
	$body .= ".SH OPTIONS\n$options" if $options;
	$body .= template("faultbed-$command.1") // '';
	$body .= ".SH SEE ALSO\n.BR faultbed (1),\n.BR faultbed\\-scenario (5),\n.BR faultbed\\-result (5)\n";
	write_page("faultbed-$command", 1, 'Faultbed', $body);
}
for my $name ('faultbed.1', 'faultbed-vmm.1', 'faultbed-scenario.5', 'faultbed-result.5') {
	my ($base, $section) = $name =~ /^(.*)\.(\d)$/;

	write_page($base, $section, $section == 1 ? 'Faultbed' : 'File formats of Faultbed', template($name) // die "error: man/$name.in is not there\n");
}
