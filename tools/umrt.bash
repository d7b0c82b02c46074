# bash completion for umrt                                                    -*- shell-script -*-

_umrt_flags() { # the long flags that a subcommand's help lists: those that begin a line, not those spoken of
    "${COMP_WORDS[0]}" "$1" --help 2>/dev/null | sed -nE 's/^ +(-[a-zA-Z], )?(--[a-z][a-z0-9-]*=?).*/\2/p' | sort -u
}

_umrt_valued() { # the flags of both lengths whose value may be the next word: their help has a '='
    "${COMP_WORDS[0]}" "$1" --help 2>/dev/null |
        sed -nE 's/^ +((-[a-zA-Z]), )?(--[a-z][a-z0-9-]*)=.*/\2 \3/p'
}

_umrt_words() {
    mapfile -t COMPREPLY < <(compgen -W "$1" -- "$2")
    [[ ${#COMPREPLY[@]} -eq 1 && ${COMPREPLY[0]} == *= ]] && compopt -o nospace
}

_umrt() {
    local cur=${COMP_WORDS[COMP_CWORD]} command=${COMP_WORDS[1]} i commands valued
    COMPREPLY=()

    if ((COMP_CWORD == 1)) || { ((COMP_CWORD == 2)) && [[ $command == help ]]; }; then
        commands=$("${COMP_WORDS[0]}" help 2>/dev/null | awk '/^  [a-z]/ { print $1 }')
        _umrt_words "$commands" "$cur"
        return
    fi
    if ((COMP_CWORD == 2)) && [[ $command == profile && $cur != -* ]]; then
        _umrt_words "show merge diff" "$cur"
        return
    fi
    if [[ $command == run || $command == record || $command == top ]]; then
        # After the program's name its own completion goes on.
        valued=" $(_umrt_valued "$command" | tr '\n' ' ') "
        for ((i = 2; i < COMP_CWORD; i++)); do
            case ${COMP_WORDS[i]} in
            --) ((i++)); break ;;
            -*) if [[ ${COMP_WORDS[i + 1]} == "=" ]]; then
                    ((i += 2))
                elif [[ $valued == *" ${COMP_WORDS[i]} "* ]]; then
                    ((i++))
                fi ;;
            *) break ;;
            esac
        done
        if ((i > COMP_CWORD)); then # the word is a flag's value
            compopt -o filenames
            [[ $cur == "=" ]] && cur=
            mapfile -t COMPREPLY < <(compgen -f -- "$cur")
            return
        fi
        if ((i < COMP_CWORD)) && declare -F _command_offset >/dev/null; then
            _command_offset "$i"
            return
        fi
        if [[ $cur != -* ]]; then
            mapfile -t COMPREPLY < <(compgen -c -- "$cur"; compgen -f -- "$cur")
            return
        fi
    fi
    if [[ $command == gen && $cur != -* && ${COMP_WORDS[COMP_CWORD - 1]} != -o ]]; then
        _umrt_words "$("${COMP_WORDS[0]}" gen --list 2>/dev/null | awk '/^[a-z]/ { print $1 }')" "$cur"
    elif [[ $command == explain && $cur != -* ]]; then
        _umrt_words "$("${COMP_WORDS[0]}" explain 2>/dev/null | awk '/^  [a-z]/ { print $1 }')" "$cur"
    elif [[ $cur == -* ]]; then
        _umrt_words "$(_umrt_flags "$command")" "$cur"
    else
        compopt -o filenames
        mapfile -t COMPREPLY < <(compgen -f -- "$cur")
    fi
}

complete -F _umrt umrt
