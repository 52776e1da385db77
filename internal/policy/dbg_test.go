package policy
import ("testing";"encoding/json";"os";"strings")
func TestDbg(t *testing.T){
 for _, s := range strings.Split(os.Getenv("DBG"),"|||") {
 v:=JudgeShell(s,&Facts{Cwd:corpusRoot,Roots:[]string{corpusRoot},Home:corpusHome})
 b,_:=json.MarshalIndent(v,""," ")
 t.Log(s, string(b))
 }
}
