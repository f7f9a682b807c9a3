#!/bin/bash
# SPDX-License-Identifier: GPL-2.0-only
#
# faultbed report: a page that needs nothing else and can be read by all, and the same as text, table and tests. A result's words are anybody's:
# none of them becomes markup, a command of gnuplot's, or a cell of its own.

. "$(dirname "$0")/../tap.sh"
fb=$BUILD/faultbed
export XDG_CACHE_HOME=$TAP_DIR/cache
# shellcheck disable=SC2034
TAP_TIMEOUT=300
cd "$TAP_DIR" || exit 1

cat >m.ini <<'EOF'
# How do threads scale, and what do delays do?
[vm]
engine = soft
topology = 2x2x1
memory = 256MiB
cost_model = ivb-ep
[run]
command = multi-fault 1
warmup = 500us
duration = 2ms
repeat = 2
headline = faults_per_s
[vary]
run.command = multi-fault 1 --pages 64, multi-fault 2 --pages 64, multi-fault 4 --pages 64
inject.ipi.remote = none, fixed:20us
EOF
tap_run "$fb" run -q m.ini --profile -o m.json
tap_is "there is a result" "$RC" 0
printf 'experiment\tkind\ttext\tpublished\tmeasured\tverdict\nx\trow\tspeed\t2.0\t1.5±0.1\t\nx\trow\tsize\t4\t4\t\nx\trow\ttimes\t1 2 4\t1±0.1 2 3\tat 1 8 16\nx\tclaim\tfaster\t\tby 2\tholds\nx\tclaim\tsmaller\t\tby 0\tdoes not hold\nx\texpect\tas fast\t\thalf\tmissed\nx\tnote\tso it is\t\t\t\n' >summary.tsv

# --- the page ---

tap_run "$fb" report m.json summary.tsv -o m.html --figures figs
tap_is "html: status 0" "$RC" 0
[ "$RC" = 0 ] || tap_diag "$ERR"
"$fb" report m.json summary.tsv -f html >again.html
tap_ok "the same again, byte for byte" cmp m.html again.html
tap_is "nothing in it is fetched" "$(grep -Eo '(src|href|url|action|poster)[ =(]+["'\'']?(https?:|//|ftp:|file:)' m.html)" ""
tap_is "no script" "$(grep -ciE '<script|javascript:|onload=' m.html)" 0
tap_ok "under 5 MB" test "$(wc -c <m.html)" -lt 5000000
# page CHECK: by perl, over the whole page.
page() { perl -0777 -ne "$1" m.html; }
tap_is "each id is there once" "$(page 'my %n; $n{$1}++ while /\bid="([^"]+)"/g; print join " ", grep { $n{$_} > 1 } keys %n')" ""
tap_is "each link and label has its target" \
	"$(page 'my %id; $id{$1} = 1 while /\bid="([^"]+)"/g; print "$1 " while /(?:href="#|aria-labelledby="|xlink:href=.#)([^"\x27]+)/g && !$id{$1}')" ""
tap_is "one h1, and no level left out" "$(page 'my $l = 1; my @h = /<h([1-6])/g; print scalar(grep { $_ == 1 } @h); for (@h) { print " jump" if $_ > $l + 1; $l = $_ }')" 1
tap_like "language, main, skip link" "$(tr '\n' ' ' <m.html)" '<html lang="en">.*href="#content".*<main id="content">'
tap_is "each table has a caption, and heads with a scope" "$(page 'my @t = /<table.*?<\/table>/gs; print scalar(grep { !/<caption>[^<]/ || /<th>/ } @t)')" 0
drawings=$(grep -c '<svg' m.html)
tap_ok "there are drawings ($drawings)" test "$drawings" -ge 6
tap_is "each has a name for those who do not see it" "$(grep -c 'role="img" aria-labelledby="f[0-9]*-t"><title' m.html)" "$drawings"
tap_is "and its data beside it" "$(page 'my @f = /<figure>.*?<\/figure>/gs; print scalar(grep { !/data:text\/csv/ } @f)')" 0
tap_is "the page's colours are in it, and no others" "$(grep -o "\(stroke\|fill\) *= *['\"]\(rgb\|#\|black\|white\)[^'\"]*" m.html | sort -u)" ""
for what in 'faults_per_s by command' 'Where the vCPUs&apos; time went' 'Cache lines that were waited for' 'IPIs by node of source' 'distance from node' \
	'Injected delays' 'Latency of IPIs' 'Measured over published' 'times' '<b class="bad">1 of 2</b> claims'; do
	tap_ok "it has: $what" grep -qF "$what" m.html
done
tap_is "drawings are files, too" "$(find figs -name '*.svg' | wc -l)" "$drawings"
for f in figs/*.svg; do
	xmllint --noout "$f" 2>/dev/null || echo "$f"
done >bad-svg
tap_is "each is well-formed" "$(cat bad-svg)" ""

# A figure's CSV is what the result says.
perl -MJSON::PP -0777 -e '
	open my $j, "<", "m.json"; my $r = JSON::PP->new->utf8->decode(<$j>);
	open my $h, "<", "m.html"; my $page = <$h>;
	my ($uri) = $page =~ /faults_per_s by command.*?data:text\/csv;charset=utf-8,([^"]+)/s or die "no CSV";
	$uri =~ s/%([0-9A-F]{2})/chr hex $1/ge;
	my @rows = map { [split /,/] } split /\r\n/, $uri;
	for my $c (@{ $r->{cells} }) {
		my ($x) = $c->{set}{"run.command"} =~ /(\d+)/;
		my ($row) = grep { $_->[0] eq $x } @rows or die "no row $x";
		my ($column) = grep { $rows[0][$_] eq $c->{set}{"inject.ipi.remote"} } 0 .. $#{ $rows[0] };
		my $mean = $c->{summary}{rates}{faults_per_s}{mean};
		abs($row->[$column] - $mean) <= 1e-5 * $mean or die "$x: $row->[$column], and the result has $mean";
	}
' 2>csv.txt
tap_is "a curve's data are the result's means" "$?$(cat csv.txt)" 0

# --- the others ---

"$fb" report m.json summary.tsv -o m.xml 2>/dev/null
tap_ok "junit: well-formed" xmllint --noout m.xml
tap_is "a test for each cell and claim" "$(xmllint --xpath 'string(/testsuites/@tests)' m.xml)" 8
tap_is "a failure for the claim that does not hold, none for what was expected" "$(xmllint --xpath 'string(/testsuites/@failures)' m.xml)" 1
"$fb" report m.json -f csv >m.csv
tap_is "csv: a line for each figure of each cell" "$(($(wc -l <m.csv) - 1))" \
	"$(perl -MJSON::PP -0777 -ne 'my $n; for (@{ JSON::PP->new->utf8->decode($_)->{cells} }) { $n += keys %{ $_->{summary}{$_[0]} } for (); $n += keys %{ $_->{summary}{rates} }; $n += keys %{ $_->{summary}{reports} }; $n += keys %{ $_->{summary}{counters} } } print $n' m.json)"
"$fb" report m.json summary.tsv -o m.md 2>/dev/null
tap_is "md: tables whose rows are as long as their heads" "$(perl -ne 'if (/^\|/) { my $n = () = /(?<!\\)\|/g; $w //= $n; print "line $.\n" if $n != $w } else { undef $w }' m.md)" ""
mkdir -p tree/deep
cp m.json tree/deep
cp summary.tsv tree
tap_run "$fb" report tree -f md
tap_like "a folder: what is in it and its folders" "$OUT" '^## deep/m$'
tap_like "and its conclusions" "$OUT" '^## Published and measured: x$'

# --- hostile words ---

perl -MJSON::PP -0777 -ne '
	my $evil = "<script>alert(1)</script>\"\x27`&|,\\ \$(touch pwned) \x1b[31m\x07\nEND_OF_DATA\n!touch pwned\n\xe2\x82\xac";
	utf8::decode($evil);
	my $o = JSON::PP->new->utf8->decode($_);
	$o->{question} = $evil; $o->{engine} = $evil;
	$o->{vary} = { "run.command" => [map { "$evil $_" } 1, 2, 4], "inject.ipi.remote" => ["$evil none", "$evil fixed"] };
	my $n = 0;
	for my $c (@{ $o->{cells} }) {
		$c->{set} = { "run.command" => "$evil " . 2 ** int($n / 2), "inject.ipi.remote" => $evil . ($n % 2 ? " fixed" : " none") };
		$c->{name} = "$evil $n"; $c->{status} = 1; $c->{why} = $evil;
		$c->{vm}{trust} = [$evil]; $c->{vm}{kernel}{release} = $evil; $c->{vm}{cost_model}{name} = $evil;
		$c->{summary}{counters}{$evil} = { unit => $evil, source => "channel", mean => 1, stderr => undef, n => 1 };
		$c->{summary}{rates}{faults_per_s}{unit} = $evil;
		$c->{summary}{counters}{"soft_time_$evil"} = { unit => "cycles", source => "soft", mean => 1e9, stderr => undef, n => 1 };
		$c->{summary}{histograms}{"injected_$evil"} = { count => 1, sum => 1, mean => 1, min => 1, max => 1, buckets => [1, 2, 3] };
		$_->{name} = $evil for @{ $c->{repeats}[0]{profile}{lines} };
		$n++;
	}
	print JSON::PP->new->utf8->encode($o);
' m.json >evil.json
printf 'experiment\tkind\ttext\tpublished\tmeasured\tverdict\n<script>x\trow\t<b>"`\\\t1 2 3\t1 2 3\tat 1 2 3\n<script>x\tclaim\t<i>&\t\t]]>\tno\n<script>x\trow\t<u>\t1\t2\t\n<script>x\trow\t</svg>\t1\t2\t\n' >evil.tsv
cp evil.tsv summary.tsv
tap_run "$fb" report evil.json summary.tsv -o evil.html
tap_is "hostile words: status 0" "$RC" 0
[ "$RC" = 0 ] || tap_diag "$ERR"
tap_is "none is markup" "$(grep -cE '<script|<b>"|<i>&|<u>' evil.html)" 0
tap_is "none is a control character" "$(tr -d '\n\t' <evil.html | grep -c '[[:cntrl:]]')" 0
tap_ok "none was run" test ! -e pwned
"$fb" report evil.json summary.tsv -o evil.xml 2>/dev/null
tap_ok "junit: well-formed" xmllint --noout evil.xml
tap_is "failures are its cells and its claim" "$(xmllint --xpath 'string(/testsuites/@failures)' evil.xml)" 7
"$fb" report evil.json summary.tsv -o evil.md 2>/dev/null
tap_is "md: no markup" "$(grep -cE '(^|[^\\])<(script|b|i|u)>' evil.md)" 0
tap_is "md: rows as long as their heads" "$(perl -ne 'if (/^\|/) { my $n = () = /(?<!\\)(?:\\\\)*\|/g; $w //= $n; print "line $.\n" if $n != $w } else { undef $w }' evil.md)" ""
"$fb" report evil.json -f csv >evil.csv
tap_is "csv: every record has eight fields" "$(perl -0777 -ne 'my $n = 0; while (/\G(?:("(?:[^"]|"")*"|[^",\r\n]*)(,|\r\n))/gc) { $n++; if ($2 ne ",") { print "$n " if $n != 8; $n = 0 } } print "rest" if pos($_) < length' evil.csv)" ""

# --- bad input ---

perl -MJSON::PP -0777 -ne 'my $o = JSON::PP->new->utf8->decode($_); $_->{vm}{cost_model} = [] for @{ $o->{cells} }; print JSON::PP->new->utf8->encode($o)' m.json >model.json
tap_run "$fb" report model.json -f md
tap_is "a cost model that is none: status 0" "$RC" 0
tap_is "and nothing of GLib's" "$(grep -c CRITICAL <<<"$ERR")" 0

# bad NAME STATUS PATTERN ARGUMENT...
bad()
{
	local name=$1 status=$2 pattern=$3

	shift 3
	tap_run "$fb" report "$@"
	tap_is "$name: status $status" "$RC" "$status"
	tap_like "$name: what is wrong" "$ERR" "$pattern"
}

mkdir empty
printf '{}' >no.json
printf 'a\tb\n' >no.tsv
bad "no argument" 2 'takes results: files of faultbed run -o'
bad "no such file" 2 'nowhere.json' nowhere.json
bad "no result" 2 'no.json: not a result' no.json -f md
bad "no summary" 2 'no.tsv:1: not a summary' no.tsv -f md
bad "an empty folder" 2 'there is no result in it' empty -f md
bad "an unknown format" 2 'html, md, csv or junit; did you mean html\?' m.json -f htlm
bad "an output that cannot be" 2 'nowhere/x.md' m.json -o nowhere/x.md
bad "drawings of a text" 2 'for html only' m.json -f md --figures x
mkdir bin
for tool in /bin/sh; do ln -s $tool bin; done
tap_run env PATH="$PWD/bin" "$fb" report m.json -o x.html
tap_is "no gnuplot: status 3" "$RC" 3
tap_like "and what to do" "$ERR" 'gnuplot-nox'
# It has not read a word of what it is told when it ends, which is not to end us with it.
printf '#!/bin/sh\nexec <&-\necho "out of paint" >&2\nexit 1\n' >bin/gnuplot
chmod +x bin/gnuplot
tap_run env PATH="$PWD/bin" "$fb" report m.json -o x.html
tap_is "a gnuplot that fails: status 4" "$RC" 4
tap_like "with what it said" "$ERR" 'gnuplot could not draw .*out of paint'
tap_ok "the rest of the page is there" grep -q '<caption>The headline' x.html

tap_done
