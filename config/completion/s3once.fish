# Completion of s3once for fish. Commands and options are read from the program's own help, so that
# they are always those of the program that is installed.

# The words before the cursor that name the command: s3once, s3once push, s3once lock run.
function __s3once_command
    set -l words (commandline -opc)
    set -l command $words[1]
    set -q words[2]; and string match -qr '^[a-z]' -- $words[2]; and set -a command $words[2]
    test "$words[2]" = lock; and set -q words[3]; and string match -qr '^[a-z]' -- $words[3]; and set -a command $words[3]
    test "$words[2]" = help; and set command $words[1]
    string join \n -- $command
end

# Whether a command is to be named next.
function __s3once_needs_command
    set -l command (__s3once_command)
    test (count $command) = 1; or test (count $command) = 2 -a "$command[2]" = lock
end

function __s3once_commands
    set -l command (__s3once_command)
    $command --help 2>/dev/null | string replace -rf '^  ([a-z]+)  +([^ ].*)$' '$1\t$2'
end

function __s3once_options
    set -l command (__s3once_command)
    $command --help all 2>/dev/null | string replace -rf '^  (?:-., |    )(--[a-z0-9-]+)(?:\[=\S+\])?(?: \S+)?(?:  +(.*))?$' '$1\t$2'
end

# What stands for the value of the option before the cursor, in the help.
function __s3once_value_of
    set -l command (__s3once_command)
    set -l words (commandline -opc)
    $command --help all 2>/dev/null | string replace -rf "^  (?:-., |    )"$words[-1]" (\S+).*" '$1'
end

function __s3once_values
    set -l argument (__s3once_value_of)
    switch "$argument"
        case '*|*'
            string split '|' -- $argument
        case PLACE
            printf '%s\n' local dynamodb: sqlite: $S3ONCE_MARKS $S3ONCE_LOCKS
            for folder in (__s3once_folders)
                for file in $folder/*.conf $folder/*.env
                    cat $file 2>/dev/null
                end
            end | string match -ar '(?:dynamodb|sqlite):[^ "\']*' | sort -u
        case ACL
            string split ' ' -- "private public-read public-read-write authenticated-read aws-exec-read bucket-owner-read bucket-owner-full-control"
        case CLASS
            string split ' ' -- "STANDARD REDUCED_REDUNDANCY STANDARD_IA ONEZONE_IA INTELLIGENT_TIERING GLACIER GLACIER_IR DEEP_ARCHIVE OUTPOSTS EXPRESS_ONEZONE SNOW"
        case JOB
            __s3once_jobs
        case FILE PATH DIR
            __fish_complete_path (commandline -ct)
    end
    if test (commandline -opc)[-1] = --profile
        cat ~/.aws/config ~/.aws/credentials 2>/dev/null | string replace -rf '^\[(?:profile +)?([^] ]*)\].*' '$1' | sort -u
    end
end

# The folders of jobs, as s3once run looks for them.
function __s3once_folders
    if test -n "$S3ONCE_JOBS"
        echo $S3ONCE_JOBS
        return
    end
    if test (id -u) != 0
        set -l config $XDG_CONFIG_HOME
        test -n "$config"; or set config ~/.config
        echo $config/s3once
    end
    echo /etc/s3once
end

function __s3once_jobs
    for folder in (__s3once_folders)
        for file in $folder/*.conf
            basename $file .conf
        end
    end | sort -u
end

complete -c s3once -f
complete -c s3once -n __s3once_needs_command -a '(__s3once_commands)'
complete -c s3once -n 'string match -q -- "-*" (commandline -ct)' -a '(__s3once_options)'
complete -c s3once -n 'string length -q -- (__s3once_value_of)' -a '(__s3once_values)'
complete -c s3once -n 'not __s3once_needs_command; and not string length -q -- (__s3once_value_of)' -F
complete -c s3once -n 'contains -- (__s3once_command)[2] run watch config' -a '(__s3once_jobs)'
