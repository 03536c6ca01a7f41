# Completion of s3once for bash. Commands and options are read from the program's own help, so that
# they are always those of the program that is installed.

# The names and descriptions in the output of "s3once help ...": lines that begin with two blanks.
_s3once_commands() {
	"$@" --help 2>/dev/null | sed -n 's/^  \([a-z]\{1,\}\)  *[^ ].*/\1/p'
}

# The options in the output of "s3once COMMAND --help all", each with what stands for its value.
_s3once_options() {
	"$@" --help all 2>/dev/null | sed -n 's/^  \(-., \|    \)\(--[a-z0-9-]*\)\( \([^ ]*\)\)\{0,1\}.*/\2 \4/p'
}

_s3once_profiles() {
	cat "${AWS_CONFIG_FILE:-$HOME/.aws/config}" "${AWS_SHARED_CREDENTIALS_FILE:-$HOME/.aws/credentials}" 2>/dev/null |
		sed -n 's/^\[\(profile  *\)\{0,1\}\([^] ]*\)\].*/\2/p' | sort -u
}

# Tables and files that the environment and the jobs of this host name.
_s3once_places() {
	printf '%s\n' local dynamodb: sqlite: ${S3ONCE_MARKS-} ${S3ONCE_LOCKS-}
	local folder
	_s3once_folders | while read -r folder; do
		cat "$folder"/*.conf "$folder"/*.env
	done 2>/dev/null | grep -o '\(dynamodb\|sqlite\):[^ "'\'']*' | sort -u
}

# The folders of jobs, as s3once run looks for them.
_s3once_folders() {
	if [ -n "${S3ONCE_JOBS-}" ]; then
		printf '%s\n' "$S3ONCE_JOBS"
	else
		[ "$(id -u)" = 0 ] || printf '%s\n' "${XDG_CONFIG_HOME:-$HOME/.config}/s3once"
		printf '%s\n' /etc/s3once
	fi
}

_s3once_jobs() {
	local file folder
	_s3once_folders | while read -r folder; do
		for file in "$folder"/*.conf; do
			[ ! -e "$file" ] || basename "$file" .conf
		done
	done | sort -u
}

_s3once() {
	local cur prev words cword program option argument i
	_get_comp_words_by_ref -n := cur prev words cword
	COMPREPLY=()
	program=("${words[0]}")
	for ((i = 1; i < cword && i <= 2; i++)); do
		[[ ${words[i]} == [a-z]* ]] || break
		[ "$i" = 1 ] || [ "${words[1]}" = lock ] || break
		program+=("${words[i]}")
	done
	if [ "${program[1]-}" = help ] || { [ "$cword" -le 2 ] && [ "${#program[@]}" = "$cword" ] &&
		{ [ "$cword" = 1 ] || [ "${program[1]}" = lock ]; }; }; then
		[ "${program[1]-}" != help ] || program=("${words[0]}")
		COMPREPLY=($(compgen -W "$(_s3once_commands "${program[@]}") --help" -- "$cur"))
		return
	fi
	while read -r option argument; do
		[ "$option" = "$prev" ] && [ -n "$argument" ] || continue
		case $argument in
		*\|*) COMPREPLY=($(compgen -W "${argument//|/ }" -- "$cur")) ;;
		PLACE)
			compopt -o nospace
			COMPREPLY=($(compgen -W "$(_s3once_places)" -- "$cur"))
			__ltrim_colon_completions "$cur"
			;;
		FILE | PATH) compopt -o filenames && mapfile -t COMPREPLY < <(compgen -f -- "$cur") ;;
		ACL) COMPREPLY=($(compgen -W "private public-read public-read-write authenticated-read aws-exec-read bucket-owner-read bucket-owner-full-control" -- "$cur")) ;;
		CLASS) COMPREPLY=($(compgen -W "STANDARD REDUCED_REDUNDANCY STANDARD_IA ONEZONE_IA INTELLIGENT_TIERING GLACIER GLACIER_IR DEEP_ARCHIVE OUTPOSTS EXPRESS_ONEZONE SNOW" -- "$cur")) ;;
		JOB) COMPREPLY=($(compgen -W "$(_s3once_jobs)" -- "$cur")) ;;
		DIR) compopt -o filenames && mapfile -t COMPREPLY < <(compgen -d -- "$cur") ;;
		esac
		[ "$option" != --profile ] || COMPREPLY=($(compgen -W "$(_s3once_profiles)" -- "$cur"))
		return
	done < <(_s3once_options "${program[@]}")
	if [[ $cur == -* ]]; then
		COMPREPLY=($(compgen -W "$(_s3once_options "${program[@]}" | cut -d' ' -f1)" -- "$cur"))
		return
	fi
	compopt -o filenames
	mapfile -t COMPREPLY < <(
		[[ ${program[1]} != @(run|watch|config) ]] || compgen -W "$(_s3once_jobs)" -- "$cur"
		compgen -f -- "$cur"
	)
}
complete -F _s3once s3once
